package debugpage

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/understudy-lb/understudy/internal/printable"
	"github.com/understudy-lb/understudy/internal/shell"
)

// Recent is what became of the calls that ended in the last ten seconds; in the last four or two,
// where most of those failed.
type Recent struct {
	// PerSecond is how many ended in a second.
	PerSecond float64 `json:"per_second"`
	Ended     uint64  `json:"ended"`
	// Failed is how many of them failed in a way that says that a backend is in trouble:
	// with UNAVAILABLE, DEADLINE_EXCEEDED, DATA_LOSS, INTERNAL, UNKNOWN or
	// RESOURCE_EXHAUSTED. Codes are those that they failed with.
	Failed uint64   `json:"failed"`
	Codes  []string `json:"codes,omitempty"`
}

// windows are the times, in seconds, of which recents say what became of calls. An outage is
// said before the longest is full of it: where most calls of a shorter one failed, and these
// are more than a few.
var windows = [...]int64{shell.RecentSeconds, 4, 2}

type recents [len(windows)]shell.Recent

const fewCalls = 3

// recentOf returns what became of calls, nil where none ended. began is when the first of
// them can have begun.
func recentOf(all recents, began, now time.Time) *Recent {
	r, seconds := all[0], windows[0]
	for i, shorter := range all[1:] {
		if 2*r.Failed < r.Ended && 2*shorter.Failed >= shorter.Ended && shorter.Ended >= fewCalls {
			r, seconds = shorter, windows[i+1]
		}
	}
	if r.Ended == 0 {
		return nil
	}
	window := min(max(now.Sub(began), time.Second), time.Duration(seconds)*time.Second)
	recent := &Recent{PerSecond: float64(r.Ended) / window.Seconds(), Ended: r.Ended, Failed: r.Failed}
	for _, code := range r.Codes() {
		recent.Codes = append(recent.Codes, printable.Code(code))
	}
	return recent
}

// Failing reports whether at least half of the calls failed.
func (r *Recent) Failing() bool { return r != nil && r.Failed > 0 && 2*r.Failed >= r.Ended }

// failures says how many calls failed and with what, "" for none.
func (r *Recent) failures() string {
	switch {
	case r == nil || r.Failed == 0:
		return ""
	case r.Failed == r.Ended:
		return "all failing: " + strings.Join(r.Codes, ", ")
	}
	return fmt.Sprintf("%s %% failing: %s", percent(float64(r.Failed)/float64(r.Ended)), strings.Join(r.Codes, ", "))
}

// said says how many calls there are, and what becomes of them: "20/s, all failing: INTERNAL".
func (r *Recent) said() string {
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
