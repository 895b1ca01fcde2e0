package outlierdetection

import (
	"context"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// period is a span of time in which calls to an endpoint begin. A success resets the
// consecutive failures only if its call began after the first of them. A call proves an
// endpoint only if it began after the endpoint was last ejected and its priority last emptied.
// Each of these events therefore starts a new period, whose Done function handles the calls
// that began in it.
type period struct {
	policy   *policy
	endpoint *endpoint
	number   uint64
	proof    *proof                  // nil while the endpoint has nothing to prove
	ended    func(balancer.DoneInfo) // the method value count, allocated once
}

// proof counts the calls that began in one of the core's epochs.
type proof struct {
	epoch             uint64
	answers, refusals atomic.Uint64
	said              atomic.Bool // the core has been notified of an answer
	watches           atomic.Bool // a call without a deadline is being timed
}

// current returns the endpoint's current period. It creates the first one.
func (p *policy) current(e *endpoint) *period {
	if b := e.Attached.period.Load(); b != nil {
		return b
	}
	return p.begin(e, func(now *period) {})
}

// begin starts a new period, a copy of the previous one with the changes that change makes.
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

// renew starts a new period if the endpoint's epoch has changed. It must be called from a shell
// event.
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

func (b *period) count(info balancer.DoneInfo) {
	r := b.policy.rules.Load()
	if r == nil {
		return
	}
	counter := &b.endpoint.Attached.counter
	switch r.of(info) {
	case success:
		counter.successes.Add(1)
		// Skip the store if the value is 0 already, to avoid contention between cores.
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

// fail counts a consecutive failure and ejects the endpoint if the limit is reached. The count may
// exceed r.row after an update has lowered the limit. If several calls end at the same time, only
// one of them resets the count.
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

// unavailable reports whether the last failure was UNAVAILABLE, as for a lost connection.
func (c *counter) unavailable() bool { return codes.Code(c.code.Load()) == codes.Unavailable }

// answered counts an answer. If it is the first answer of an unproven endpoint, answered notifies
// the core.
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

// watch returns the Done function of a call. A call without a deadline, such as a long stream,
// counts as an answer after one interval. Only one call at a time is timed.
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
