package watch

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/understudy-lb/understudy/cmd/understudy/internal/table"
	"github.com/understudy-lb/understudy/internal/page"
)

func newTestPage(t *testing.T, handler http.HandlerFunc) *remotePage {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	transport, err := TLS{}.transport()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(transport.CloseIdleConnections)
	page, err := newRemote(server.URL+"/debug/understudy/", transport)
	if err != nil {
		t.Fatal(err)
	}
	return page
}

func setJSONType(w http.ResponseWriter) { w.Header().Set("Content-Type", "application/json") }

func TestInvalidPageIsRejected(t *testing.T) {
	repeat := func(begin, text string, bytes int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			setJSONType(w)
			io.WriteString(w, begin)
			chunk := []byte(strings.Repeat(text, 10_000))
			for n := 0; n < bytes; n += len(chunk) {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}
	}
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"not found":     {http.NotFound, "answers 404 Not Found, want a page from debug.Handler"},
		"HTML":          {func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") }, `answers with "text/html", want JSON`},
		"other JSON":    {repeat(`{"status": "ok"}`, "", 0), "no list of channels"},
		"no JSON":       {repeat(`hello`, "", 0), "not JSON from debug.Handler"},
		"wrong types":   {repeat(`{"channels": 3}`, "", 0), "not JSON from debug.Handler"},
		"endless":       {repeat(`{"channels":[{"target":"`, "x", 1<<30), "more than 8388608 bytes"},
		"many channels": {repeat(`{"channels":[{}`, ",{}", 4<<20), "values, want at most 300000"},
		"deep": {func(w http.ResponseWriter, _ *http.Request) {
			setJSONType(w)
			fmt.Fprint(w, `{"channels":[{"tree":`, strings.Repeat(`{"children":[{"below":`, 20_000))
		}, "not JSON from debug.Handler"},
		"compressed": {func(w http.ResponseWriter, _ *http.Request) {
			setJSONType(w)
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			defer z.Close()
			for range 1 << 10 {
				if _, err := z.Write(make([]byte, 1<<20)); err != nil {
					return
				}
			}
		}, "more than 8388608 bytes"},
		"sent elsewhere": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://192.0.2.1/latest/meta-data", http.StatusFound)
		}, "the server redirects to http://192.0.2.1/latest/meta-data"},
		"sent in a circle": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.String(), http.StatusFound)
		}, "the server redirects to"},
	} {
		t.Run(name, func(t *testing.T) {
			page := newTestPage(t, test.handler)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := page.fetch(t.Context())
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error = %v, want %q", err, test.want)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 100<<20 {
				t.Errorf("it took %d MB", used>>20)
			}
		})
	}
}

// The largest accepted page takes a bounded amount of memory, and can be shown.
func TestLargestPageIsBounded(t *testing.T) {
	child := `{"name":"` + strings.Repeat("x", 20) + `"},`
	body := `{"channels":[null,{"tree":{"children":[null,` + strings.Repeat(child, 149_000) + `{}]}}]}`
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	page, err := parse([]byte(body))
	runtime.GC()
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	if used := int64(after.HeapAlloc) - int64(before.HeapAlloc); used > 100<<20 {
		t.Errorf("the page takes %d MB", used>>20)
	}
	v := &view{page: page, now: time.Now()}
	if lines := v.render(80, 24); len(lines) > 24 {
		t.Errorf("%d lines are shown on 24", len(lines))
	}
	runtime.KeepAlive(page)
}

// Control characters in names and errors are escaped. Otherwise, they could control the terminal or
// reverse other text. Long names and errors are shortened.
func TestHostileNamesAreTruncatedAndEscaped(t *testing.T) {
	hostile := "<b>\x1b]0;title\a\x1b[2J\x1b[31m\u202e\u2066\x9b\x00\r\n" + strings.Repeat("é漢", 5000)
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	endpoint := &page.Child{Name: hostile, Title: hostile, State: hostile, Error: hostile, Ejected: hostile, Since: &now}
	below := &page.Policy{Policy: hostile, Notes: []string{hostile}, Children: []*page.Child{endpoint}, Folded: map[string]int{hostile: -5}}
	branch := &page.Child{Name: hostile, Title: hostile, State: hostile, Why: hostile, Below: below, Share: 1e300}
	channel := &page.Channel{
		ID: 1, Target: hostile, State: hostile, InUse: hostile, Why: []string{hostile, hostile}, Since: &now, InUseSince: &now,
		Sources: []page.Source{{Name: hostile, State: hostile, Error: hostile, Answered: &now}}, Events: []page.Event{{Time: now, Text: hostile}},
		Tree: &page.Policy{Policy: "priority", Error: hostile, Children: []*page.Child{branch, branch, {Name: hostile}}, BusySince: &now},
	}
	isControl := func(r rune) bool { return r != '\n' && unicode.In(r, unicode.C, unicode.Zl, unicode.Zp) }
	for _, columns := range []int{1, 5, 20, 60, 80, 200} {
		page := &page.Page{Time: now, Channels: []*page.Channel{channel}}
		v := &view{page: page, pageURL: hostile, fetchErr: errors.New(hostile), now: now}
		for _, l := range v.render(columns, 100) {
			text := l.paint(columns, table.Painter(false))
			if strings.ContainsFunc(text, isControl) || strings.Contains(text, "\n") || cells(text) > columns {
				t.Errorf("at %d columns a line is %q, of %d", columns, text, cells(text))
			}
		}
	}
	f := follower{view: &view{pageURL: "http://x/"}}
	events := f.observe(now, &page.Page{Time: now, Channels: []*page.Channel{channel}}, nil)
	events = append(events, f.observe(now, nil, errors.New(hostile))...)
	for _, newReporter := range []func(io.Writer) reporter{func(w io.Writer) reporter { return lineReporter{w} }, func(w io.Writer) reporter { return jsonReporter{w} }} {
		var out bytes.Buffer
		if err := newReporter(&out).report(f.view, events); err != nil {
			t.Fatal(err)
		}
		if text := out.String(); strings.ContainsFunc(text, isControl) || len(events) < 2 {
			t.Errorf("%d events are shown as %q", len(events), text)
		}
	}
}

func TestSlowPageTimesOut(t *testing.T) {
	release := make(chan struct{})
	page := newTestPage(t, func(w http.ResponseWriter, _ *http.Request) {
		setJSONType(w)
		w.(http.Flusher).Flush()
		<-release
	})
	defer close(release)
	if page.client.Timeout != pageTimeout {
		t.Errorf("a page may take %v, want %v", page.client.Timeout, pageTimeout)
	}
	page.client.Timeout = time.Second // a real second, because the page comes from a real socket
	if _, err := page.fetch(t.Context()); err == nil || !strings.Contains(err.Error(), "deadline exceeded") {
		t.Errorf("error = %v, want that it took too long", err)
	}
}
