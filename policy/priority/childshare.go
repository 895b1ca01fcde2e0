package priority

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/understudy-lb/understudy/internal/core/share"
	"github.com/understudy-lb/understudy/internal/lb/live"
	"github.com/understudy-lb/understudy/internal/lb/shell"
)

// childShare is the share of the calls that a child takes, together with the state of its
// connections.
//
// As long as the share is 1, most calls only need the view, which any number of them can read
// concurrently. The remaining calls lock the share when they're picked and when they end. We never
// call out while holding the lock.
type childShare struct {
	start   time.Time
	changed func() // called when standing has changed; queues an event
	view    atomic.Pointer[share.View]

	mu       sync.Mutex
	share    *share.Share
	standing share.Standing
	history  *history // only with a debug page

	share.Link // only used in events
	reports
}

func newChildShare(start time.Time, config share.Config, changed func()) *childShare {
	c := &childShare{start: start, changed: changed, share: share.New(time.Since(start), config), Link: share.NewLink()}
	if live.Enabled() {
		c.history = &history{}
	}
	view := c.share.View()
	c.view.Store(&view)
	return c
}

// with runs f with the share locked, and then publishes what has changed.
func (c *childShare) with(f func(s *share.Share, now time.Duration)) {
	now := time.Since(c.start)
	c.mu.Lock()
	f(c.share, now)
	if view := c.share.View(); view != *c.view.Load() {
		next := view
		c.view.Store(&next)
	}
	if c.history != nil {
		fraction, _ := c.share.Fraction()
		c.history.record(now, fraction)
	}
	before := c.standing
	c.standing = c.share.Standing()
	changed := c.standing != before
	c.mu.Unlock()
	if changed {
		c.changed()
	}
}

func (c *childShare) current() share.Standing {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.standing
}

// look returns when the child last gave a good answer, measured from start.
func (c *childShare) look() (share.Standing, time.Duration) {
	var goodAt time.Duration
	c.with(func(s *share.Share, now time.Duration) { goodAt = s.Look(now) })
	return c.current(), goodAt
}

func (c *childShare) read() shell.Share {
	c.mu.Lock()
	defer c.mu.Unlock()
	fraction, cause := c.share.Fraction()
	s := shell.Share{Fraction: fraction, Cause: cause}
	if c.history != nil {
		c.history.record(time.Since(c.start), fraction)
		s.Lowest = c.history.lowest()
	}
	return s
}

func (c *childShare) take() (taken bool) {
	c.with(func(s *share.Share, now time.Duration) { taken = s.Take(now, rand.Float64()) })
	return taken
}

func (c *childShare) probe() (taken, tripped bool) {
	c.with(func(s *share.Share, now time.Duration) { taken, tripped = s.Probe(now), s.Tripped() })
	return taken, tripped
}

// begin begins a timed call and returns its Done function. Both endpoint and below, the Done
// function of the policies below, may be nil. With offered, we first ask the share if it takes the
// call, and return nil if it doesn't.
func (c *childShare) begin(info balancer.PickInfo, endpoint *share.Endpoint, below func(balancer.DoneInfo), offered bool) func(balancer.DoneInfo) {
	var budget time.Duration
	if info.Ctx != nil {
		if deadline, ok := info.Ctx.Deadline(); ok {
			budget = max(1, time.Until(deadline))
		}
	}
	var call share.Call
	taken := true
	c.with(func(s *share.Share, now time.Duration) {
		if taken = !offered || s.Take(now, rand.Float64()); taken {
			call = s.Begin(now, budget, info.FullMethodName, endpoint)
		}
	})
	if !taken {
		return nil
	}
	return func(info balancer.DoneInfo) { c.end(call, info, below) }
}

func (c *childShare) untimed(stamp share.Stamp, endpoint *share.Endpoint, below func(balancer.DoneInfo)) func(balancer.DoneInfo) {
	return func(info balancer.DoneInfo) {
		switch {
		case info.Err != nil || !info.BytesReceived || c.view.Load().Watch:
			c.end(share.Untimed(stamp, endpoint), info, below)
		case below != nil:
			below(info)
		}
	}
}

var errLate = status.FromContextError(context.DeadlineExceeded).Err()

// end ends a call for the share first, then for the policies below us. They'll see a late answer as
// an expired call, which lets outlier detection eject a slow endpoint. A full endpoint isn't an
// outlier, so a refused call looks like an answer to them. And a call that expired in a full queue
// is neither an answer nor a failure.
func (c *childShare) end(call share.Call, info balancer.DoneInfo, below func(balancer.DoneInfo)) {
	blame, result := share.ByResult, resultOf(&info)
	c.with(func(s *share.Share, now time.Duration) { blame = s.End(now, call, result) })
	if below == nil {
		return
	}
	switch {
	case blame == share.Late:
		info.Err = &shell.Judged{Real: info.Err, Seen: errLate}
	case blame == share.FullNow:
		info.Err = &shell.Judged{Real: info.Err, Nothing: true}
	case result == share.Refused:
		info.Err = &shell.Judged{Real: info.Err}
	}
	below(info)
}

func resultOf(info *balancer.DoneInfo) share.Result {
	code, conclusive := shell.Ended(info)
	switch {
	case !conclusive:
		return share.Cancelled
	case info.BytesReceived && (code == codes.DeadlineExceeded || code == codes.Canceled):
		return share.Partial
	}
	switch code {
	case codes.DeadlineExceeded:
		return share.Expired
	case codes.Unavailable:
		if !info.BytesReceived {
			return share.Lost
		}
		return share.Unavailable
	case codes.ResourceExhausted:
		return share.Refused
	case codes.Internal, codes.Unknown, codes.DataLoss:
		return share.Failed
	}
	return share.Good
}
