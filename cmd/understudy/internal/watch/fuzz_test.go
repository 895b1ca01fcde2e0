package watch

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/understudy-lb/understudy/cmd/understudy/internal/table"
	"github.com/understudy-lb/understudy/internal/page"
)

// FuzzPage parses arbitrary responses. Each response is either rejected with an error of one line,
// or shown in all output formats, without control characters and no larger than the terminal.
func FuzzPage(f *testing.F) {
	for _, seed := range []string{
		`{"time":"2026-01-02T03:04:05Z","started":"2026-01-02T03:00:00Z","channels":[{"id":1,"target":"a","state":"READY","since":"2026-01-02T03:04:00Z","in_use":"p0","why":["b"],
			"tree":{"policy":"priority","children":[{"name":"p0","state":"READY","share":1,"in_use":true,"below":{"policy":"wrr","folded":{"READY":3},"children":[
				{"name":"10.0.0.1:1","state":"TRANSIENT_FAILURE","error":"refused\n","share":0.5,"calls":{"started":18446744073709551615,"failed":2},"ejected":"x"}]}}]},
			"sources":[{"state":"ok","error":"gone","confirmed":"2026-01-02T03:04:00Z","endpoints":-1}],"events":[{"time":"2026-01-02T03:04:01Z","text":"e\u001b[2J"}],
			"recent":{"calls":10,"failed":5}}]}`,
		`{"channels":[null,{"idle":true,"twin":true,"tree":{"children":[null,{"below":{"children":[{"below":{}}]}}]}}]}`,
		`{"channels":[]}`, `{"channels":null}`, `{"channels":[{"tree":{"children":[{"share":1e308,"name":"/","calls":{}}],"folded":{"\u202e":-5}}}]}`, `[]`, `{`, `{"status":"ok"}`, "{\"time\":\"\x7f-01-02T03:00:00Z\"}",
	} {
		f.Add([]byte(seed))
	}
	isControl := func(r rune) bool { return r != '\n' && unicode.In(r, unicode.C, unicode.Zl, unicode.Zp) }
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f.Fuzz(func(t *testing.T, body []byte) {
		page, err := parse(body)
		if err != nil {
			if _, ok := errors.AsType[invalidPageError](err); !ok || strings.ContainsFunc(err.Error(), isControl) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error = %q, want an invalidPageError in one line", err)
			}
			return
		}
		for _, columns := range []int{1, 20, 80, 200} {
			v := &view{page: page, now: now}
			const rows = 24
			shown := v.render(columns, rows)
			if len(shown) > rows {
				t.Errorf("%d lines are shown on %d", len(shown), rows)
			}
			for _, l := range append(shown, v.summary(columns)...) {
				if text := l.paint(columns, table.Painter(false)); strings.ContainsFunc(text, isControl) || strings.Contains(text, "\n") || cells(text) > columns {
					t.Errorf("at %d columns a line is %q, of %d", columns, text, cells(text))
				}
			}
		}
		for _, newReporter := range []func(io.Writer) reporter{func(w io.Writer) reporter { return lineReporter{w} }, func(w io.Writer) reporter { return jsonReporter{w} }} {
			fl := follower{view: &view{pageURL: "http://x/"}}
			events := fl.observe(now, page, nil)
			var out bytes.Buffer
			if err := newReporter(&out).report(fl.view, events); err != nil {
				t.Fatal(err)
			}
			if strings.ContainsFunc(out.String(), isControl) {
				t.Errorf("the page is reported as %q", out.String())
			}
			if repeated := fl.observe(now, page, nil); len(repeated) > 0 && !hasDuplicateIDs(page) {
				t.Errorf("the same page again makes the events %v", repeated)
			}
			if err := fl.view.checkHealth(); err != nil && !errors.Is(err, ErrUnavailable) {
				t.Errorf("the watch ends with %v", err)
			}
		}
	})
}

func hasDuplicateIDs(page *page.Page) bool {
	seen := make(map[uint64]bool)
	for _, c := range page.Channels {
		if seen[c.ID] {
			return true
		}
		seen[c.ID] = true
	}
	return false
}
