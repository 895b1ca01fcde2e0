package discovery

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"
)

// shortestRefresh keeps a fleet from asking a name server without a pause.
const shortestRefresh = time.Second

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

// refreshOptions hold the fields of a Refresh that were given.
type refreshOptions struct {
	every       *time.Duration
	removeAfter *int
}

// WithRefresh makes sources that look up names, DNS and SRV, ask again this long after
// each answer, give or take a tenth. So new backends are used without waiting for a
// failure. It is 0 or at least 1 s. 0 turns it off; by default DNS does not ask again, and
// SRV does every 30 s. Other sources are told what is new.
func WithRefresh(every time.Duration) Option {
	return func(o *options) { o.refresh.every = &every }
}

// WithRemoveAfter sets how many answers in a row must lack an address before its
// connections are closed, where names are looked up again by an interval. It is at
// least 1; the default is 2. For answers that rotate n subsets of a large set it is n.
func WithRemoveAfter(answers int) Option {
	return func(o *options) { o.refresh.removeAfter = &answers }
}

// Refresh returns what the target's parameters "refresh" and "removeAfter" say, or else
// the options, or else defaults. It is for sources that look up names.
func (t *Target) Refresh(defaults Refresh) (Refresh, error) {
	if text := t.Parameter("refresh"); text != "" {
		every, err := parseDuration(text)
		if err != nil {
			return Refresh{}, t.wrong("has a mistake: refresh: %v", err)
		}
		t.options.refresh.every = &every
	}
	if text := t.Parameter("removeAfter"); text != "" {
		answers, err := strconv.Atoi(text)
		if err != nil {
			return Refresh{}, t.wrong("has a mistake: removeAfter: %q given, want a number of answers such as 2", text)
		}
		t.options.refresh.removeAfter = &answers
	}
	r := defaults
	if every := t.options.refresh.every; every != nil {
		r.Every = *every
	}
	if answers := t.options.refresh.removeAfter; answers != nil {
		r.RemoveAfter = *answers
	}
	return r, r.check()
}

func (r Refresh) check() error {
	switch {
	case r.Every != 0 && r.Every < shortestRefresh:
		return fmt.Errorf("refresh: %v given, want %v or more, or 0s for none", r.Every, shortestRefresh)
	case r.RemoveAfter < 1:
		return fmt.Errorf("removeAfter: %d given, want 1 or more answers", r.RemoveAfter)
	}
	return nil
}

// Next returns how long to wait after an answer: Every, give or take a random tenth.
func (r Refresh) Next() time.Duration { return jittered(r.Every) }

// jittered returns d, give or take a tenth.
func jittered(d time.Duration) time.Duration {
	return d + time.Duration((rand.Float64()-0.5)*0.2*float64(d))
}
