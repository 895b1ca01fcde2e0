package discovery

import (
	"context"
	"time"

	"github.com/understudy-lb/understudy/internal/config/options"
	"github.com/understudy-lb/understudy/internal/net/xnet"
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

// LookUp calls lookUp, and then again one interval after each answer, or earlier if the channel calls
// ResolveNow: then 30 s after the answer, as gRPC's DNS resolver does. After an error, or an answer
// that the channel rejects, it is called with gRPC's backoff if that is shorter than the interval.
// The context is cancelled when the channel no longer needs the source.
func (r Refresh) LookUp(to *Receiver, lookUp func(context.Context) (Answer, error)) Started {
	lookups := xnet.NewLookups(r.Every)
	ctx, cancel := context.WithCancel(context.Background())
	go lookups.Run(ctx, func(ctx context.Context) bool {
		a, err := lookUp(ctx)
		switch {
		case ctx.Err() != nil:
			return false
		case err != nil:
			to.Fail(err)
			return false
		}
		return to.Update(a) == nil
	})
	return Started{Close: cancel, ResolveNow: lookups.Request}
}

// Poll returns a source that calls fetch at once and then as Refresh.LookUp does, with the given
// interval between an answer and the next call. Calls of fetch do not overlap unless the source is
// started more than once. If fetch returns an error, or an answer that the channel rejects, the last
// good answer stays in use. When the channel no longer needs the source, the context is cancelled;
// fetch must then return, and its result is ignored.
func Poll(interval time.Duration, fetch func(context.Context) (Answer, error)) Source {
	return poller{Refresh{Every: interval}, fetch}
}

type poller struct {
	Refresh
	fetch func(context.Context) (Answer, error)
}

func (p poller) Start(r *Receiver) (Started, error) { return p.LookUp(r, p.fetch), nil }

func (poller) Check(bool) error { return nil }
