package discovery

import (
	"time"

	"github.com/understudy-lb/understudy/internal/config/options"
)

// Refresh configures how often a source looks up names and when it removes an address.
type Refresh struct {
	// Every is the time between an answer and the next lookup, randomized by 10% so that the
	// clients of a fleet do not all look up names at the same time. The minimum is 1 s. If Every is
	// 0, lookups happen only when a connection fails.
	Every time.Duration
	// RemoveAfter is the number of consecutive answers that must lack an address before the address
	// is removed, at least 1. It is ignored if Every is 0, because there may be no second answer.
	RemoveAfter int
}

// Refresh returns the values of the target's parameters "refresh" and "removeAfter". A value that
// the target does not set comes from the program's options, or else from defaults. The method is
// for sources that look up names. The target is invalid if a value is.
func (t *Target) Refresh(defaults Refresh) Refresh {
	for _, name := range options.Names(options.LookedUpName) {
		if text := t.Parameter(name); text != "" {
			if err := t.options.Set(name, text, options.LookedUpName); err != nil {
				t.fail(t.errorf("has an invalid parameter: %v", err))
			}
		}
	}
	r := defaults
	if t.options.Refresh != 0 {
		r.Every = max(t.options.Refresh, 0)
	}
	if t.options.RemoveAfter != 0 {
		r.RemoveAfter = t.options.RemoveAfter
	}
	return r
}
