package page

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/understudy-lb/understudy/internal/lb/shell"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

// Recent counts the calls that ended within the last ten seconds. If calls have only just started
// to fail, we look at fewer seconds, see windows.
type Recent struct {
	PerSecond float64 `json:"per_second"`
	Ended     uint64  `json:"ended"`
	// Failed counts calls that point to a problem with the backend, i.e. those that ended with
	// UNAVAILABLE, DEADLINE_EXCEEDED, DATA_LOSS, INTERNAL, UNKNOWN or RESOURCE_EXHAUSTED. Codes
	// lists the ones that occurred.
	Failed uint64   `json:"failed"`
	Codes  []string `json:"codes,omitempty"`
}

// In seconds. We prefer a shorter window if it has at least minCalls calls and half of them failed,
// so that an outage shows up sooner.
var windows = [...]int64{shell.RecentSeconds, 4, 2}

type recents [len(windows)]shell.Recent

const minCalls = 3

func recentOf(counts recents, earliest, now time.Time) *Recent {
	// There were no calls before earliest, so the rate must not cover more time than that.
	r, seconds := counts[0], windows[0]
	for i, shorter := range counts[1:] {
		if 2*r.Failed < r.Ended && 2*shorter.Failed >= shorter.Ended && shorter.Ended >= minCalls {
			r, seconds = shorter, windows[i+1]
		}
	}
	if r.Ended == 0 {
		return nil
	}
	window := min(max(now.Sub(earliest), time.Second), time.Duration(seconds)*time.Second)
	recent := &Recent{PerSecond: float64(r.Ended) / window.Seconds(), Ended: r.Ended, Failed: r.Failed}
	for _, code := range r.Codes() {
		recent.Codes = append(recent.Codes, printable.Code(code))
	}
	return recent
}

// Failing reports whether at least half of the calls failed. It's false if there weren't any.
func (r *Recent) Failing() bool { return r != nil && r.Failed > 0 && 2*r.Failed >= r.Ended }

func (r *Recent) failures() string {
	switch {
	case r == nil || r.Failed == 0:
		return ""
	case r.Failed == r.Ended:
		return "all failing: " + strings.Join(r.Codes, ", ")
	}
	return fmt.Sprintf("%s %% failing: %s", printable.Percent(float64(r.Failed)/float64(r.Ended)), strings.Join(r.Codes, ", "))
}

func (r *Recent) describe() string {
	if r == nil {
		return ""
	}
	digits := 0
	if r.PerSecond < 10 {
		digits = 1
	}
	text := strings.TrimSuffix(strconv.FormatFloat(max(r.PerSecond, 0.1), 'f', digits, 64), ".0") + "/s"
	if failures := r.failures(); failures != "" {
		text += ", " + failures
	}
	return text
}
