package demo

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func newTestPage(t *testing.T) (*cluster, *httptest.Server) {
	t.Helper()
	c := newCluster(filepath.Join(t.TempDir(), "endpoints.yaml"))
	t.Cleanup(func() { c.set("", killed) })
	if err := c.set("", serving); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer((&page{cluster: c}).handler())
	t.Cleanup(server.Close)
	return c, server
}

func doRequest(t *testing.T, method, url string, form url.Values, header ...string) (int, string, http.Header) {
	t.Helper()
	request, err := http.NewRequest(method, url, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			request.Host = header[i+1]
		}
		request.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body), response.Header
}

func (c *cluster) states() string {
	var all []string
	for _, b := range c.backends {
		all = append(all, b.current().String())
	}
	return strings.Join(all, " ")
}

// The buttons act on all backends of a priority, a locality or an endpoint. The page then shows the
// last action.
func TestButtonsBreakAndRestoreBackends(t *testing.T) {
	t.Parallel()
	c, server := newTestPage(t)
	first := c.backends[0].address
	for _, test := range []struct{ do, to, want, said string }{
		{"kill", "p0", "killed killed killed serving serving", "Killed p0 at "},
		{"hang", "us-east/a", "hung hung killed serving serving", "Hung us-east/a at "},
		{"fail", first, "errors hung killed serving serving", "Made to return errors: 127.0.0.1:"},
		{"kill", first, "killed hung killed serving serving", "Killed 127.0.0.1:"},
		{"restore", "p0", "serving serving serving serving serving", "Restored p0 at "},
		{"fill", "us-east/b", "serving serving full serving serving", "Filled us-east/b at "},
		{"restore", "us-east/b", "serving serving serving serving serving", "Restored us-east/b at "},
		{"fail", "p1", "serving serving serving errors errors", "Made to return errors: p1 at "},
		{"restore", "p1", "serving serving serving serving serving", "Restored p1 at "},
	} {
		code, body, header := doRequest(t, http.MethodPost, server.URL+"/do", url.Values{test.do: {test.to}})
		if code != http.StatusSeeOther || header.Get("Location") != "/#"+test.to {
			t.Fatalf("%s %s: %d %s", test.do, test.to, code, body)
		}
		if got := c.states(); got != test.want {
			t.Errorf("%s %s: the backends are %s, want %s", test.do, test.to, got, test.want)
		}
		_, page, _ := doRequest(t, http.MethodGet, server.URL+"/", nil)
		if !strings.Contains(page, test.said) || !strings.Contains(page, `id="`+test.to+`"`) {
			t.Errorf("%s %s: the page does not say %q, or has no such row:\n%s", test.do, test.to, test.said, page)
		}
	}
	if now := c.backends[0].address; now != first {
		t.Errorf("a backend came back on %s, want %s", now, first)
	}
}

// No other web site can press the buttons. The server rejects forms that pages of other origins
// send, and requests whose Host header is neither localhost nor a loopback address.
func TestButtonsRejectOtherSites(t *testing.T) {
	t.Parallel()
	c, server := newTestPage(t)
	kill := url.Values{"kill": {"p0"}}
	_, port, _ := strings.Cut(strings.TrimPrefix(server.URL, "http://"), ":")
	for _, test := range []struct {
		method, path string
		header       []string
		code         int
	}{
		{http.MethodPost, "/do", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{http.MethodPost, "/do", []string{"Sec-Fetch-Site", "same-site"}, 403},
		{http.MethodPost, "/do", []string{"Origin", "https://evil.example.com"}, 403},
		{http.MethodPost, "/do", []string{"Origin", "http://127.0.0.1:1"}, 403},
		{http.MethodPost, "/do", []string{"Origin", "null"}, 403},
		{http.MethodPost, "/do", []string{"Host", "evil.example.com:" + port, "Origin", "http://evil.example.com:" + port}, 403},
		{http.MethodGet, "/", []string{"Host", "evil.example.com"}, 403},
		{http.MethodGet, "/debug/understudy/", []string{"Host", "127.0.0.1.evil.example.com"}, 403},
		{http.MethodGet, "/do", nil, 405},
		{http.MethodPut, "/do", nil, 405},
		{http.MethodPost, "/", nil, 405},
		{http.MethodPost, "/debug/understudy/", nil, 405},
		{http.MethodGet, "/nothing", nil, 404},
		{http.MethodGet, "/controls.html", nil, 404},
		{http.MethodGet, "/", []string{"Host", "localhost:" + port}, 200},
		{http.MethodGet, "/", []string{"Host", "[::1]:" + port}, 200},
		{http.MethodHead, "/", nil, 200},
	} {
		code, body, header := doRequest(t, test.method, server.URL+test.path, kill, test.header...)
		if code != test.code {
			t.Errorf("%s %s with %q: %d, want %d: %s", test.method, test.path, test.header, code, test.code, body)
		}
		for name, want := range map[string]string{"X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"} {
			if got := header.Values(name); !slices.Equal(got, []string{want}) {
				t.Errorf("%s %s with %q: %s is %q, want %q", test.method, test.path, test.header, name, got, want)
			}
		}
		if csp := header.Get("Content-Security-Policy"); !strings.Contains(csp, "frame-ancestors 'none'") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s %s: the policy is %q", test.method, test.path, csp)
		}
	}
	for _, form := range []url.Values{{"<b>": {"p0"}}, {"kill": {"p7"}}, {"kill": {""}}, {"kill": nil}, {}, {"kill": {strings.Repeat("x", 1<<17)}}} {
		if code, body, _ := doRequest(t, http.MethodPost, server.URL+"/do", form); code != http.StatusBadRequest || len(body) > 200 {
			t.Errorf("%.50q: %d %s", form, code, body)
		}
	}
	if got := c.states(); got != "serving serving serving serving serving" {
		t.Errorf("the backends are %s", got)
	}
}

// The page is the debug page with one form. It works without JavaScript, and its buttons have labels
// for screen readers.
func TestPageHasOneForm(t *testing.T) {
	t.Parallel()
	c, server := newTestPage(t)
	_, page, header := doRequest(t, http.MethodGet, server.URL+"/", nil)
	for _, want := range []string{
		"<!DOCTYPE html>", `<button name="kill" value="p0" aria-label="Kill: p0">Kill</button>`,
		`aria-label="Restore: ` + c.backends[4].address + `"`, `class="said" role="status"`, "</section>\n<main id=\"main\"", "<form", "/controls.css",
	} {
		if strings.Count(page, want) != 1 {
			t.Errorf("the page has not one %s:\n%s", want, page)
		}
	}
	for _, forbidden := range []string{"style=", "<style", "onclick", "javascript:", "<script>", "http-equiv"} {
		if strings.Contains(page, forbidden) {
			t.Errorf("the page has %s", forbidden)
		}
	}
	if csp := header.Get("Content-Security-Policy"); !strings.Contains(csp, "form-action 'self'") || !strings.Contains(csp, "script-src 'self'") {
		t.Errorf("the policy is %q, want one under which forms work", csp)
	}
	for path, want := range map[string]string{"/?asset=script": "EventSource", "/?asset=style": "--ready", "/?format=json": `"channels"`, "/?help": "What to look at first", "/controls.css": ".controls", "/debug/understudy/": "form-action 'none'"} {
		code, body, header := doRequest(t, http.MethodGet, server.URL+path, nil)
		if code != 200 || !strings.Contains(body+header.Get("Content-Security-Policy"), want) {
			t.Errorf("%s: %d %.200s", path, code, body)
		}
	}
	if _, plain, _ := doRequest(t, http.MethodGet, server.URL+"/debug/understudy/", nil); strings.Contains(plain, "<form") {
		t.Error("the debug page itself has controls")
	}
}

func TestPageEndsWithDemo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	done := make(chan error)
	go func() {
		done <- (&page{cluster: &cluster{}}).serve(ctx, Options{Out: writer, Progress: io.Discard})
	}()
	line := make([]byte, 100)
	n, err := reader.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	address := strings.TrimSpace(strings.TrimPrefix(string(line[:n]), "page: "))
	if !strings.HasPrefix(address, "http://127.0.0.1:") {
		t.Errorf("the page is at %s, want loopback", address)
	}
	response, err := http.Get(address + "?format=events")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	cancel()
	if err := <-done; err != nil {
		t.Errorf("the page ended with %v", err)
	}
	io.Copy(io.Discard, response.Body) // returns when the server closes the connection
}
