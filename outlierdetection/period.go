package outlierdetection

import (
	"context"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// period is a time of an endpoint in which calls begin. What a call says when it ends
// depends on when it began: a success ends a row of failures only if its call began after the
// row's first, and only a call that began after the endpoint was last ejected, and its tier
// last emptied, proves it. So each of these moments begins a period, with a function
// of its own that hears of the calls that began in it.
type period struct {
	policy   *policy
	endpoint *endpoint
	number   uint64
	proof    *proof                  // nil while the endpoint has nothing to prove
	ended    func(balancer.DoneInfo) // count, made once
}

// proof is what the calls of one of the core's epochs say.
type proof struct {
	epoch             uint64
	answers, refusals atomic.Uint64
	said              atomic.Bool // the core has heard of an answer
	watches           atomic.Bool // a call without a deadline
}

// current returns the period in which calls of the endpoint begin.
func (p *policy) current(e *endpoint) *period {
	if b := e.Attached.period.Load(); b != nil {
		return b
	}
	return p.begin(e, func(now *period) {})
}

// begin begins a period: the one before, but for what change does.
func (p *policy) begin(e *endpoint, change func(*period)) *period {
	for {
		before := e.Attached.period.Load()
		now := &period{policy: p, endpoint: e}
		if before != nil {
			now.number, now.proof = before.number+1, before.proof
		}
		change(now)
		now.ended = now.count
		if e.Attached.period.CompareAndSwap(before, now) {
			return now
		}
	}
}

// renew begins a period where the endpoint's epoch is another, in an event.
func (p *policy) renew(e *endpoint) {
	r, b := p.rules.Load(), p.current(e)
	var now *proof
	if r != nil && r.proof && e.Doubted() {
		now = &proof{epoch: e.Epoch()}
	}
	if now != nil && b.proof != nil && now.epoch == b.proof.epoch || now == nil && b.proof == nil {
		return
	}
	p.begin(e, func(b *period) { b.proof = now })
}

// count counts a call that has ended.
func (b *period) count(info balancer.DoneInfo) {
	r := b.policy.rules.Load()
	if r == nil {
		return
	}
	counter := &b.endpoint.Attached.counter
	switch r.of(info) {
	case success:
		counter.successes.Add(1)
		// Stored only where it is not 0: all cores would wait for one another.
		if counter.row.Load() != 0 && b.number >= counter.since.Load() {
			counter.row.Store(0)
		}
		if b.proof != nil {
			b.answered()
		}
	case failure:
		counter.failures.Add(1)
		counter.code.Store(uint32(status.Code(info.Err)))
		if b.proof != nil {
			b.proof.refusals.Add(1)
		}
		b.fail(r)
	case nothing:
	}
}

// fail counts a failure in a row. More than r.row there are where an update has just asked
// for fewer. Of several calls that end at once, the last ends the row.
func (b *period) fail(r *rules) {
	if r.row == 0 {
		return
	}
	p, e := b.policy, b.endpoint
	counter := &e.Attached.counter
	row := counter.row.Add(1)
	if row >= r.row && counter.row.CompareAndSwap(row, 0) {
		p.Event(func() {
			e.Unavailable = counter.unavailable()
			p.core.Failed(e, time.Now())
			p.settle()
		})
	} else if row == 1 {
		p.begin(e, func(b *period) { counter.since.Store(b.number) })
	}
}

// unavailable says whether the last failure was one as when a connection is lost.
func (c *counter) unavailable() bool { return codes.Code(c.code.Load()) == codes.Unavailable }

// answered counts an answer, and has the core hear of the first that it waits for.
func (b *period) answered() {
	b.proof.answers.Add(1)
	if !b.endpoint.Attached.unproven.Load() || !b.proof.said.CompareAndSwap(false, true) {
		return
	}
	p := b.policy
	p.Event(func() {
		if p.current(b.endpoint).proof == b.proof {
			p.core.Answered(b.endpoint)
			p.settle()
		}
	})
}

// watch returns the function that hears of a call. One without a deadline counts as an
// answer once it has been under way for an interval. One at a time is watched for that: if it
// ends earlier, the next one is.
func (b *period) watch(ctx context.Context) func(balancer.DoneInfo) {
	r := b.policy.rules.Load()
	if _, has := ctx.Deadline(); has || r == nil || !b.proof.watches.CompareAndSwap(false, true) {
		return b.ended
	}
	timer := time.AfterFunc(r.interval, b.answered)
	return func(info balancer.DoneInfo) {
		timer.Stop()
		b.proof.watches.Store(false)
		b.count(info)
	}
}
