package page

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

// FuzzRequest checks the responses to arbitrary requests. The headers that protect browsers must be
// set, an error must be one short line, JSON must be valid, and the links on a page must keep the
// parameters of the page.
func FuzzRequest(f *testing.F) {
	for _, seed := range []string{
		"", "format=json", "format=events", "format=xml", "asset=style", "asset=../page.html", "help", "channel=1", "channel=-1", "channel=18446744073709551615&format=json",
		"endpoints=3&format=json", "endpoints=1048575", "endpoints=1048576", "format=json;channel=1", "%zz", "channel=%00\n", "format=%1b[2J",
	} {
		f.Add(http.MethodGet, seed)
	}
	f.Add("POST", "format=json")
	f.Add("HEAD", "format=events")
	f.Add("\n", "")
	p, state := root(f, &lbtest.ClientConn{}, "fuzz:///request", 3)
	if err := p.UpdateClientConnState(state); err != nil {
		f.Fatal(err)
	}
	h := Handler()
	ended, cancel := context.WithCancel(context.Background())
	cancel() // a request for an event stream then ends after its first event
	f.Fuzz(func(t *testing.T, method, query string) {
		w := httptest.NewRecorder()
		u := &url.URL{Path: "/", RawQuery: query}
		h.ServeHTTP(w, (&http.Request{Method: method, URL: u}).WithContext(ended))
		body := w.Body.String()
		if w.Header().Get("Content-Security-Policy") != policy || w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("the headers are %v", w.Header())
		}
		switch kind := w.Header().Get("Content-Type"); {
		case w.Code/100 == 4:
			if text := strings.TrimSuffix(body, "\n"); strings.ContainsAny(text, "\n\r\x00\x1b") || len(text) > 300 || text == "" {
				t.Errorf("%d: the error is %q", w.Code, body)
			}
		case w.Code != http.StatusOK:
			t.Errorf("status %d: %s", w.Code, body)
		case kind == "application/json" && !json.Valid([]byte(body)):
			t.Errorf("no JSON: %.300s", body)
		case !strings.Contains(kind, "charset=utf-8") && kind != "application/json" && kind != "text/event-stream":
			t.Errorf("the type is %q", kind)
		}
		q, err := parse(u.Query())
		if err != nil {
			return
		}
		link, err := url.ParseQuery(strings.TrimPrefix(q.link("json"), "?"))
		if err != nil {
			t.Fatal(err)
		}
		if reparsed, err := parse(link); err != nil || reparsed != q || link.Get("format") != "json" {
			t.Errorf("the link of %+v is %v, which is %+v, %v", q, link, reparsed, err)
		}
	})
}
