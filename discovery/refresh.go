package discovery

import (
	"math/rand/v2"
	"time"

	"github.com/understudy-lb/understudy/internal/options"
)

// Refresh says how often a source looks up names, and when it gives an address up.
type Refresh struct {
	// Every is the time from an answer to the next question, give or take a tenth: the
	// clients of a fleet must not all ask at the same time. 0 asks again only when a
	// connection fails. Otherwise it is at least 1 s.
	Every time.Duration
	// RemoveAfter is how many answers in a row must lack an address before it is given
	// up, at least 1. It counts only where Every is not 0: otherwise there may be no
	// second answer.
	RemoveAfter int
}

// Refresh returns what the target's parameters "refresh" and "removeAfter" say, or else
// the program's options, or else defaults. It is for sources that look up names.
func (t *Target) Refresh(defaults Refresh) (Refresh, error) {
	for _, name := range options.Names(options.Lookups) {
		if text := t.parameter(name); text != "" {
			if _, err := t.given.Set(name, text, options.Lookups); err != nil {
				return Refresh{}, t.wrong("has a mistake: %v", err)
			}
		}
	}
	r := defaults
	if t.given.Refresh != 0 {
		r.Every = max(t.given.Refresh, 0)
	}
	if t.given.RemoveAfter != 0 {
		r.RemoveAfter = t.given.RemoveAfter
	}
	return r, nil
}

// Next returns how long to wait after an answer: Every, give or take a random tenth.
func (r Refresh) Next() time.Duration { return jittered(r.Every) }

// jittered returns d, give or take a tenth.
func jittered(d time.Duration) time.Duration {
	return d + time.Duration((rand.Float64()-0.5)*0.2*float64(d))
}
