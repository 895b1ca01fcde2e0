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

// intake is how many of the calls a child takes: its share, and what is known of its connections.
//
// At a share of 1, most calls need only the view, which many read at once. The others lock the share
// when they are picked and when they end. Nothing is called while it is locked.
type intake struct {
	start   time.Time
	changed func() // queues an event; called when standing has changed
	view    atomic.Pointer[share.View]

	mu       sync.Mutex
	share    *share.Share
	standing standing
	history  *history // nil unless the debug page is enabled

	connection // used in events only
	reports
}

// standing is the part of a share that concerns other priorities and the log.
type standing struct {
	depth  depth
	wanted bool // another priority is wanted, because this last one cannot carry its calls
	fails  bool // the last one, and no call succeeds
}

// depth is how far a share has fallen.
type depth int

const (
	whole depth = iota // the share is 1
	part
	low     // below a half
	tripped // 0
)

func depthOf(fraction float64) depth {
	switch {
	case fraction == 1:
		return whole
	case fraction >= 0.5:
		return part
	case fraction > 0:
		return low
	}
	return tripped
}

func newIntake(start time.Time, config share.Config, changed func()) *intake {
	i := &intake{start: start, changed: changed, share: share.New(time.Since(start), config)}
	if live.Enabled() {
		i.history = &history{}
	}
	view := i.share.View()
	i.view.Store(&view)
	return i
}

// with locks the share for f, and passes on what has changed.
func (i *intake) with(f func(s *share.Share, now time.Duration)) {
	now := time.Since(i.start)
	i.mu.Lock()
	f(i.share, now)
	if view := i.share.View(); view != *i.view.Load() {
		next := view // on the heap only if the view has changed
		i.view.Store(&next)
	}
	fraction, _ := i.share.Fraction()
	if i.history != nil {
		i.history.record(now, fraction)
	}
	before := i.standing
	i.standing = standing{depthOf(fraction), i.share.Wanted(), i.share.Failing()}
	changed := i.standing != before
	i.mu.Unlock()
	if changed {
		i.changed()
	}
}

func (i *intake) current() standing {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.standing
}

// look returns when the child last gave a good answer, since start.
func (i *intake) look() (standing, time.Duration) {
	var goodAt time.Duration
	i.with(func(s *share.Share, now time.Duration) { goodAt = s.Look(now) })
	return i.current(), goodAt
}

// read returns the share as people see it.
func (i *intake) read() shell.Share {
	i.mu.Lock()
	defer i.mu.Unlock()
	fraction, cause := i.share.Fraction()
	s := shell.Share{Fraction: fraction, Cause: cause}
	if i.history != nil {
		i.history.record(time.Since(i.start), fraction)
		s.Lowest = i.history.lowest()
	}
	return s
}

// take reports whether the child takes a call that is offered to it.
func (i *intake) take() (taken bool) {
	i.with(func(s *share.Share, now time.Duration) { taken = s.Take(now, rand.Float64()) })
	return taken
}

// probe reports whether the child takes a call that no child takes.
func (i *intake) probe() (taken, tripped bool) {
	i.with(func(s *share.Share, now time.Duration) { taken, tripped = s.Probe(now), s.Tripped() })
	return taken, tripped
}

// begin begins a timed call and returns its Done function. endpoint and below, the Done function of
// the policies below, may be nil. With offered, the call is offered first, and the result is nil if
// the child does not take it.
func (i *intake) begin(info balancer.PickInfo, endpoint *share.Endpoint, below func(balancer.DoneInfo), offered bool) func(balancer.DoneInfo) {
	var budget time.Duration
	if info.Ctx != nil {
		if deadline, ok := info.Ctx.Deadline(); ok {
			budget = max(1, time.Until(deadline))
		}
	}
	var call share.Call
	taken := true
	i.with(func(s *share.Share, now time.Duration) {
		if taken = !offered || s.Take(now, rand.Float64()); taken {
			call = s.Begin(now, budget, info.FullMethodName, endpoint)
		}
	})
	if !taken {
		return nil
	}
	return func(info balancer.DoneInfo) { i.end(call, info, below) }
}

// untimed returns the Done function of calls of which only a failure counts.
func (i *intake) untimed(stamp share.Stamp, below func(balancer.DoneInfo)) func(balancer.DoneInfo) {
	return func(info balancer.DoneInfo) {
		switch {
		case info.Err != nil || !info.BytesReceived || i.view.Load().Watch:
			i.end(share.Untimed(stamp), info, below)
		case below != nil:
			below(info)
		}
	}
}

var errLate = status.FromContextError(context.DeadlineExceeded).Err()

// end ends a call, first for the share and then for the policies below. Those see a late answer as
// an expired call, so that outlier detection ejects an endpoint that is slow. An endpoint that is full
// is no outlier: a refused call is an answer to them, and one that expired in a full queue is neither
// an answer nor a failure.
func (i *intake) end(call share.Call, info balancer.DoneInfo, below func(balancer.DoneInfo)) {
	blame, result := share.ByResult, resultOf(&info)
	i.with(func(s *share.Share, now time.Duration) { blame = s.End(now, call, result) })
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
		return share.Unavailable
	case codes.ResourceExhausted:
		return share.Refused
	case codes.Internal, codes.Unknown, codes.DataLoss:
		return share.Failed
	}
	return share.Good
}
