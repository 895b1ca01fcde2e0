package watch

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

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
			checkScreen(t, &follower{page: page}, now, columns)
		}
		for _, newReporter := range []func(io.Writer) reporter{lineReporter, jsonReporter} {
			f := follower{url: "http://x/"}
			events := f.observe(now, page, nil)
			var out bytes.Buffer
			if err := newReporter(&out)(&f, events); err != nil {
				t.Fatal(err)
			}
			if strings.ContainsFunc(out.String(), isControl) {
				t.Errorf("the page is reported as %q", out.String())
			}
			if repeated := f.observe(now, page, nil); len(repeated) > 0 && !hasDuplicateIDs(page) {
				t.Errorf("the same page again makes the events %v", repeated)
			}
			if err := f.checkHealth(); err != nil && !errors.Is(err, ErrUnavailable) {
				t.Errorf("the watch ends with %v", err)
			}
		}
	})
}

func isControl(r rune) bool { return r != '\n' && unicode.In(r, unicode.C, unicode.Zl, unicode.Zp) }

// checkScreen checks that the screen has no control characters, and fits into the terminal.
func checkScreen(t *testing.T, f *follower, now time.Time, columns int) {
	t.Helper()
	const rows = 24
	shown := strings.Split(f.screen(now, columns, rows), "\n")
	if len(shown) > rows {
		t.Errorf("%d lines are shown on %d", len(shown), rows)
	}
	for _, l := range shown {
		if strings.ContainsFunc(l, isControl) || utf8.RuneCountInString(l) > columns {
			t.Errorf("at %d columns a line is %q", columns, l)
		}
	}
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
