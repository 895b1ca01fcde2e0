package watch

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/understudy-lb/understudy/internal/page"
)

// serveTestPage starts a server, and returns a function that fetches its page.
func serveTestPage(t *testing.T, handler http.HandlerFunc) func(context.Context) (*page.Page, error) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	fetch, _, err := openPage(server.URL+"/debug/understudy/", TLS{})
	if err != nil {
		t.Fatal(err)
	}
	return fetch
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
		"HTML":          {func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") }, "not JSON from debug.Handler: invalid character '<'"},
		"other JSON":    {repeat(`{"status": "ok"}`, "", 0), "no list of channels"},
		"no JSON":       {repeat(`hello`, "", 0), "not JSON from debug.Handler"},
		"wrong types":   {repeat(`{"channels": 3}`, "", 0), "not JSON from debug.Handler"},
		"endless":       {repeat(`{"channels":[{"target":"`, "x", 1<<30), "more than 8388608 bytes"},
		"many channels": {repeat(`{"channels":[{}`, ",{}", 4<<20), "or 300000 values"},
		"null":          {repeat(`{"channels":[null]}`, "", 0), "a null in a list"},
		"null child":    {repeat(`{"channels":[{"tree":{"children":[null]}}]}`, "", 0), "a null in a list"},
		"many levels":   {repeat(`{"channels":[{"tree":`+strings.Repeat(`{"children":[{"below":`, 17)+"{}"+strings.Repeat(`}]}`, 17)+"}]}", "", 0), "more than 16 levels"},
		"deep": {func(w http.ResponseWriter, _ *http.Request) {
			setJSONType(w)
			fmt.Fprint(w, `{"channels":[{"tree":`, strings.Repeat(`{"children":[{"below":`, 20_000))
		}, "not JSON from debug.Handler"},
		"compressed": {func(w http.ResponseWriter, _ *http.Request) {
			setJSONType(w)
			w.Header().Set("Content-Encoding", "gzip")
			z, err := gzip.NewWriterLevel(w, gzip.BestSpeed) // the race detector makes it slow
			if err != nil {
				panic(err)
			}
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
			fetch := serveTestPage(t, test.handler)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := fetch(t.Context())
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
	body := `{"channels":[{"tree":{"children":[` + strings.Repeat(child, 149_000) + `{}]}}]}`
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
	checkScreen(t, &follower{page: page}, time.Now(), 80)
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
	for _, columns := range []int{1, 5, 20, 60, 80, 200} {
		page := &page.Page{Time: now, Channels: []*page.Channel{channel}}
		checkScreen(t, &follower{page: page, url: hostile, err: errors.New(hostile)}, now, columns)
	}
	f := follower{url: "http://x/"}
	events := f.observe(now, &page.Page{Time: now, Channels: []*page.Channel{channel}}, nil)
	events = append(events, f.observe(now, nil, errors.New(hostile))...)
	for _, newReporter := range []func(io.Writer) reporter{lineReporter, jsonReporter} {
		var out bytes.Buffer
		if err := newReporter(&out)(&f, events); err != nil {
			t.Fatal(err)
		}
		if text := out.String(); strings.ContainsFunc(text, isControl) || len(events) < 2 {
			t.Errorf("%d events are shown as %q", len(events), text)
		}
	}
}
