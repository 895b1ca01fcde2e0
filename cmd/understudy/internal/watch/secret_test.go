package watch

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/understudy-lb/understudy/debug"
)

const secret = "s3cret"

func TestPageSecretsAreNotShown(t *testing.T) {
	page := debug.Handler()
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		output  string
	}{
		"page":         {page.ServeHTTP, "lines"},
		"page as JSON": {page.ServeHTTP, "json"},
		"no page":      {http.NotFound, "lines"},
		"no server":    {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "lines"},
		"elsewhere": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://user:"+secret+"@192.0.2.1/x?"+r.URL.RawQuery, http.StatusFound)
		}, "lines"},
	} {
		t.Run(name, func(t *testing.T) {
			requests := make(chan bool, 10)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				user, password, _ := r.BasicAuth()
				select {
				case requests <- r.URL.Query().Get("token") == secret && user == "a"+secret && password == secret:
				default:
				}
				test.handler(w, r)
			}))
			defer server.Close()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var out strings.Builder
			result := make(chan error, 1)
			target := strings.Replace(server.URL, "://", "://a"+secret+":"+secret+"@", 1) + "/x?channel=7&token=" + secret + "#" + secret
			go func() { result <- Run(ctx, Options{Target: target, Output: test.output, Out: &out}) }()
			for n := 0; n < 3; n++ { // after three requests, the first answer has been shown
				select {
				case sent := <-requests:
					if !sent {
						t.Error("the secrets were not sent")
					}
				case err := <-result:
					result <- err
					n = 3
				}
			}
			cancel()
			err := <-result
			if text := out.String() + " " + errorText(err); strings.Contains(text, secret) || name == "no page" && !strings.Contains(text, "/x: the server answers 404") {
				t.Errorf("it is shown as %s", text)
			}
		})
	}
	for _, target := range []string{
		"http://a:" + secret + "@", "http://127.0.0.1:" + secret + "/", "http://127.0.0.1/%zz?token=" + secret,
	} {
		if text := errorText(Run(t.Context(), Options{Target: target})); text == "" || strings.Contains(text, secret) {
			t.Errorf("%s fails with %q", target, text)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
