package discovery

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"
)

// shortestRefresh keeps a fleet from asking a name server without a pause.
const shortestRefresh = time.Second

// Refresh says how a source that looks up names goes after those that move.
type Refresh struct {
	// Every is the time from an answer to the next question, give or take a tenth, so
	// that the clients of a fleet do not all ask at the same time. 0 asks again only
	// when a connection fails.
	Every time.Duration
	// RemoveAfter is how many answers in a row an address must be missing from before it
	// is given up. It counts only where Every is not 0: there may be no second answer.
	RemoveAfter int
}

// refreshOptions are a Refresh as far as it was given.
type refreshOptions struct {
	every       *time.Duration
	removeAfter *int
}

// WithRefresh makes sources that look up names, which are DNS and SRV, ask again so long
// after each answer, give or take a tenth: new backends are used without waiting for a
// failure. By default DNS does not, and SRV does every 30 s; 0 turns it off. Other sources
// hear of what is new without asking.
func WithRefresh(every time.Duration) Option {
	return func(o *options) { o.refresh.every = &every }
}

// WithRemoveAfter sets how many answers in a row an address must be missing from before
// its connections are closed, where the names are looked up again by an interval. The
// default is 2. For answers that rotate n subsets of a large set it is n.
func WithRemoveAfter(answers int) Option {
	return func(o *options) { o.refresh.removeAfter = &answers }
}

// Refresh returns what the target or an option says, or else what is in defaults: for a
// source that looks up names. Its parameters are "refresh" and "removeAfter".
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

// Next returns how long to wait after an answer: Every, give or take a tenth.
func (r Refresh) Next() time.Duration { return jittered(r.Every) }

// jittered returns d, give or take a tenth.
func jittered(d time.Duration) time.Duration {
	return d + time.Duration((rand.Float64()-0.5)*0.2*float64(d))
}
