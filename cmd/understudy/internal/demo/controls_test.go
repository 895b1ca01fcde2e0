package demo

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
)

func newTestController(t *testing.T) (*controller, *httptest.Server) {
	t.Helper()
	c, err := startCluster(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.stop)
	ctl := &controller{cluster: c}
	server := httptest.NewServer(newPage(ctl))
	t.Cleanup(server.Close)
	return ctl, server
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
	for _, s := range c.slots {
		all = append(all, s.state())
	}
	return strings.Join(all, " ")
}

// The buttons act on all backends of a priority, a locality or an endpoint. The page then shows the
// last action.
func TestControlsBreakAndRestoreBackends(t *testing.T) {
	t.Parallel()
	ctl, server := newTestController(t)
	first := "endpoint " + ctl.cluster.slots[0].address
	before := ctl.cluster.slots[0].address
	for _, test := range []struct{ do, to, want, said string }{
		{"kill", "priority 0", "killed killed killed serving serving", "Killed p0 us-east/a, us-east/b at "},
		{"hang", "locality us-east/a", "hung hung killed serving serving", "Hung us-east/a at "},
		{"fail", first, "errors hung killed serving serving", "Made to return errors: 127.0.0.1:"},
		{"kill", first, "killed hung killed serving serving", "Killed 127.0.0.1:"},
		{"restore", "priority 0", "serving serving serving serving serving", "Restored p0 us-east/a, us-east/b at "},
		{"fail", "priority 1", "serving serving serving errors errors", "Made to return errors: p1 eu-west/a at "},
		{"restore", "priority 1", "serving serving serving serving serving", "Restored p1 eu-west/a at "},
	} {
		code, body, header := doRequest(t, http.MethodPost, server.URL+"/do", url.Values{"do": {test.do}, "to": {test.to}})
		if code != http.StatusSeeOther || header.Get("Location") != "/#"+strings.ReplaceAll(test.to, " ", "-") {
			t.Fatalf("%s %s: %d %s", test.do, test.to, code, body)
		}
		if _, page, _ := doRequest(t, http.MethodGet, server.URL+"/", nil); !strings.Contains(page, `id="`+strings.ReplaceAll(test.to, " ", "-")+`"`) {
			t.Errorf("%s %s: there is nothing at %s", test.do, test.to, header.Get("Location"))
		}
		if got := ctl.cluster.states(); got != test.want {
			t.Errorf("%s %s: the backends are %s, want %s", test.do, test.to, got, test.want)
		}
		if _, page, _ := doRequest(t, http.MethodGet, server.URL+"/", nil); !strings.Contains(page, test.said) {
			t.Errorf("%s %s: the page does not say %q:\n%s", test.do, test.to, test.said, page)
		}
	}
	if now := ctl.cluster.slots[0].address; now != before {
		t.Errorf("a backend came back on %s, want %s", now, before)
	}
}

func TestCrashedBackendIsRestored(t *testing.T) {
	t.Parallel()
	ctl, _ := newTestController(t)
	s := ctl.cluster.slots[2]
	s.process.command.Process.Kill()
	if _, err := ctl.act(url.Values{"do": {"restore"}, "to": {"locality us-east/b"}}); err != nil {
		t.Fatal(err)
	}
	if err := s.process.setMode(serving); err != nil {
		t.Error(err)
	}
}

func TestControlsSetWeights(t *testing.T) {
	t.Parallel()
	ctl, server := newTestController(t)
	first := "endpoint " + ctl.cluster.slots[0].address
	if code, body, _ := doRequest(t, http.MethodPost, server.URL+"/weights", url.Values{"locality us-east/a": {"7"}, first: {" 9 "}, "locality us-east/b": {""}}); code != http.StatusSeeOther {
		t.Fatalf("%d %s", code, body)
	}
	file, err := os.ReadFile(ctl.cluster.file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"zone: a}\n  priority: 0\n  load_balancing_weight: 7\n", "    load_balancing_weight: 9\n", "zone: b}\n  priority: 0\n  load_balancing_weight: 1\n"} {
		if !strings.Contains(string(file), want) {
			t.Errorf("the file lacks %q:\n%s", want, file)
		}
	}
	for _, bad := range []string{"0", "1001", "-1", "1.5", "x", "<b>"} {
		code, body, header := doRequest(t, http.MethodPost, server.URL+"/weights", url.Values{"locality us-east/b": {"5"}, first: {bad}})
		if code != http.StatusBadRequest || !strings.Contains(body, "want a whole number from 1 to 1000") || header.Get("Content-Type") != "text/plain; charset=utf-8" {
			t.Errorf("%s: %d %s %v", bad, code, body, header)
		}
	}
	if again, err := os.ReadFile(ctl.cluster.file); err != nil || string(again) != string(file) {
		t.Errorf("a bad weight changed the file, %v:\n%s", err, again)
	}
}

// No other web site can press the buttons. The server rejects forms that pages of other origins
// send, and requests whose Host header is neither localhost nor a loopback address.
func TestControlsRejectOtherSites(t *testing.T) {
	t.Parallel()
	ctl, server := newTestController(t)
	kill := url.Values{"do": {"kill"}, "to": {"priority 0"}}
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
		{http.MethodPost, "/weights", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{http.MethodPost, "/do", []string{"Host", "evil.example.com:" + port, "Origin", "http://evil.example.com:" + port}, 403},
		{http.MethodGet, "/", []string{"Host", "evil.example.com"}, 403},
		{http.MethodGet, "/debug/understudy/", []string{"Host", "127.0.0.1.evil.example.com"}, 403},
		{http.MethodGet, "/do", nil, 405},
		{http.MethodPut, "/do", nil, 405},
		{http.MethodPost, "/", nil, 405},
		{http.MethodPost, "/debug/understudy/", nil, 405},
		{http.MethodGet, "/nothing", nil, 404},
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
	for _, form := range []url.Values{{"do": {"<b>"}, "to": {"priority 0"}}, {"do": {"kill"}, "to": {"priority 7"}}, {"do": {"kill"}}, {}, {"do": {"kill"}, "to": {strings.Repeat("x", 1<<17)}}} {
		if code, body, _ := doRequest(t, http.MethodPost, server.URL+"/do", form); code != http.StatusBadRequest || len(body) > 200 {
			t.Errorf("%.50q: %d %s", form, code, body)
		}
	}
	if got := ctl.cluster.states(); got != "serving serving serving serving serving" {
		t.Errorf("the backends are %s", got)
	}
}

// The page is the debug page with buttons. They work without JavaScript and have labels for screen
// readers.
func TestPageHasControls(t *testing.T) {
	t.Parallel()
	ctl, server := newTestController(t)
	_, page, header := doRequest(t, http.MethodGet, server.URL+"/", nil)
	for _, want := range []string{
		"<!DOCTYPE html>", `<main id="main"`, `<button name="do" value="kill" aria-label="Kill: p0 us-east/a, us-east/b">Kill</button>`,
		`aria-label="weight of us-east/a"`, `aria-label="Restore: ` + ctl.cluster.slots[4].address + `"`, `role="status"`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %s:\n%s", want, page)
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
	if code, body, _ := doRequest(t, http.MethodGet, server.URL+"/?channel=x", nil); code != 400 || !strings.Contains(body, "want its number") {
		t.Errorf("a wrong channel: %d %s", code, body)
	}
}

// withControls returns an error if the debug page does not have the expected structure.
func TestUnexpectedDebugPage(t *testing.T) {
	p := &page{controller: &controller{cluster: &cluster{}}}
	if _, err := p.withControls([]byte("<html></html>")); err == nil || !strings.Contains(err.Error(), "not exactly one") {
		t.Errorf("error = %v", err)
	}
}

func TestPageEndsWithDemo(t *testing.T) {
	ctl := &controller{cluster: &cluster{}}
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	done := make(chan error)
	go func() {
		done <- servePage(ctx, Options{Out: writer, Progress: io.Discard}, newPage(ctl))
	}()
	line := make([]byte, 100)
	n, err := reader.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	page := strings.TrimSpace(strings.TrimPrefix(string(line[:n]), "page: "))
	response, err := http.Get(page + "?format=events")
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

// A form that arrives after the end of the demo starts no backend, because nothing would stop the
// backend.
func TestNoActionAfterEnd(t *testing.T) {
	t.Parallel()
	ctl, server := newTestController(t)
	ctl.end()
	ctl.cluster.stop()
	for _, form := range []url.Values{{"do": {"restore"}, "to": {"priority 0"}}, {"do": {"hang"}, "to": {"priority 0"}}} {
		if code, body, _ := doRequest(t, http.MethodPost, server.URL+"/do", form); code != http.StatusBadRequest || !strings.Contains(body, "has ended") {
			t.Errorf("%v: %d %s, want that the demo has ended", form, code, body)
		}
	}
	if code, body, _ := doRequest(t, http.MethodGet, server.URL+"/", nil); code != http.StatusInternalServerError || !strings.Contains(body, "has ended") {
		t.Errorf("the page: %d %s, want that the demo has ended", code, body)
	}
	for _, s := range ctl.cluster.slots {
		if s.isRunning() {
			t.Errorf("%s is alive", s.address)
		}
	}
}
