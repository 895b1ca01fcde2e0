package discovery

import (
	"math/rand/v2"
	"time"

	"github.com/understudy-lb/understudy/internal/options"
)

// Refresh configures how often a source looks up names, and when it removes an address.
type Refresh struct {
	// Every is the time from an answer to the next lookup, varied by a tenth so that the clients of
	// a fleet do not all ask at once. 0 looks up again only after a failed connection. Otherwise it
	// is at least 1 s.
	Every time.Duration
	// RemoveAfter is the number of successive answers without an address that remove the address,
	// at least 1. It has an effect only if Every is not 0, because there may be no second answer
	// otherwise.
	RemoveAfter int
}

// Refresh returns the values of the target's parameters "refresh" and "removeAfter", or else the
// program's options, or else the defaults. It is for sources that look up names.
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

// Next returns how long to wait after an answer: Every, varied by a random tenth.
func (r Refresh) Next() time.Duration { return jittered(r.Every) }

// jittered returns d, varied by a random tenth.
func jittered(d time.Duration) time.Duration {
	return d + time.Duration((rand.Float64()-0.5)*0.2*float64(d))
}
