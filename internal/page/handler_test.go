package page

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestRequests(t *testing.T) {
	for _, test := range []struct {
		method, query string
		code          int
		kind, body    string
	}{
		{http.MethodGet, "", 200, "text/html; charset=utf-8", "<!DOCTYPE html>"},
		{"HEAD", "", 200, "text/html; charset=utf-8", ""},
		{http.MethodGet, "?format=json", 200, "application/json", `"channels"`},
		{"HEAD", "?format=events", 200, "text/event-stream", ""},
		{http.MethodGet, "?asset=style", 200, "text/css; charset=utf-8", "prefers-color-scheme"},
		{http.MethodGet, "?asset=script", 200, "text/javascript; charset=utf-8", "EventSource"},
		{http.MethodGet, "?asset=page.html", 404, "text/plain; charset=utf-8", "want style or script"},
		{http.MethodGet, "?format=xml", 400, "text/plain; charset=utf-8", `format "xml" given, want json, events or none`},
		{http.MethodGet, "?channel=x", 400, "text/plain; charset=utf-8", `channel "x" given, want its number`},
		{http.MethodGet, "?endpoints=-1", 400, "text/plain; charset=utf-8", `endpoints "-1" given`},
		{"POST", "", 405, "text/plain; charset=utf-8", "want GET or HEAD"},
		{"DELETE", "?format=json", 405, "text/plain; charset=utf-8", "want GET or HEAD"},
		{"OPTIONS", "?format=events", 405, "text/plain; charset=utf-8", "want GET or HEAD"},
	} {
		server := httptest.NewServer(Handler())
		request, _ := http.NewRequest(test.method, server.URL+"/any/path"+test.query, nil)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		var body strings.Builder
		bufio.NewReader(response.Body).WriteTo(&body)
		response.Body.Close()
		server.Close()
		if response.StatusCode != test.code || response.Header.Get("Content-Type") != test.kind || !strings.Contains(body.String(), test.body) {
			t.Errorf("%s %s: %d %s %.200s", test.method, test.query, response.StatusCode, response.Header, body.String())
		}
		if test.method == "HEAD" && body.Len() > 0 {
			t.Errorf("HEAD %s has a body of %d bytes", test.query, body.Len())
		}
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
			"Cache-Control": "no-store", "Content-Security-Policy": policy,
		} {
			if got := response.Header.Get(name); got != want {
				t.Errorf("%s %s: %s is %q, want %q", test.method, test.query, name, got, want)
			}
		}
		if test.code == 405 && response.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: Allow is %q", test.method, response.Header.Get("Allow"))
		}
	}
	if strings.Contains(policy, "unsafe") {
		t.Errorf("the Content-Security-Policy allows inline script or style: %s", policy)
	}
}

func TestPageHasNoInlineScriptOrStyle(t *testing.T) {
	page := get(t, "")
	for _, forbidden := range []string{"style=", "<style", "onclick", "javascript:", "<script>"} {
		if strings.Contains(page, forbidden) {
			t.Errorf("the page contains %s", forbidden)
		}
	}
}

func TestViewersAreLimited(t *testing.T) {
	server := httptest.NewServer(Handler())
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	view := func() *http.Response {
		request, _ := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/?format=events", nil)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		return response
	}
	for range maxViewers {
		line, err := bufio.NewReader(view().Body).ReadString('\n')
		if err != nil || !strings.HasPrefix(line, "data: ") {
			t.Fatalf("a viewer reads %q, %v", line, err)
		}
	}
	if response := view(); response.StatusCode != http.StatusServiceUnavailable || response.Header.Get("Retry-After") == "" {
		t.Errorf("one viewer too many gets %v", response)
	}
}
