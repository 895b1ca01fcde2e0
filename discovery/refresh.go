package discovery

import (
	"context"
	"time"

	"github.com/understudy-lb/understudy/internal/config/options"
	"github.com/understudy-lb/understudy/internal/net/xnet"
)

// Refresh configures how often a source looks up names and when it removes an address.
type Refresh struct {
	// Every is the time between an answer and the next lookup. It's randomized by 10% so that the
	// clients of a fleet don't all look up names at the same time. The minimum is 1 s. If it's 0,
	// names are only looked up when a connection fails.
	Every time.Duration
	// RemoveAfter is how many answers in a row have to be missing an address before it's removed,
	// at least 1. It's ignored if Every is 0, because there may be no second answer.
	RemoveAfter int
}

// Refresh returns the values of the target's parameters "refresh" and "removeAfter". If the target
// doesn't set one of them, its value comes from the program's options, or else from defaults. This
// is for sources that look up names. If a value is invalid, so is the target.
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

// LookUp calls lookUp, and then again one interval after each answer. If the channel calls
// ResolveNow, that can be earlier, but not less than 30 s after the answer, as in gRPC's DNS
// resolver. After an error, or an answer that the channel rejects, we use gRPC's backoff if it's
// shorter than the interval. The context is canceled when the channel no longer needs the source.
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

// Poll returns a source that calls fetch right away, and then again one interval after each answer.
// See Refresh.LookUp for when a call is made earlier. Calls of fetch don't overlap, unless the
// source is started more than once. If fetch returns an error, or an answer that the channel
// rejects, the last good answer stays in use. The context is canceled when the channel no longer
// needs the source. fetch must return then, and we ignore its result.
func Poll(interval time.Duration, fetch func(context.Context) (Answer, error)) Source {
	return poller{Refresh{Every: interval}, fetch}
}

type poller struct {
	Refresh
	fetch func(context.Context) (Answer, error)
}

func (p poller) Start(r *Receiver) (Started, error) { return p.LookUp(r, p.fetch), nil }

func (poller) Check(bool) error { return nil }
