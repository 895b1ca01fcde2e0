package outlierdetection

import (
	"context"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// period is a span of time in which calls to an endpoint begin. When a call ends, its period
// determines what the result counts for. A success resets the count of consecutive failures only if
// the call began after the first of them. An answer shows that an endpoint has recovered only if
// the call began after the endpoint, or all endpoints of the priority, were ejected. The first
// failure and such an ejection therefore begin a new period. The Done function of a call belongs to
// the period in which the call began.
type period struct {
	policy   *policy
	endpoint *endpoint
	number   uint64
	proof    *proof                  // nil if no answer is needed to show that the endpoint has recovered
	ended    func(balancer.DoneInfo) // the method count, allocated once
}

// proof counts the results of the calls that began in one epoch of the core.
type proof struct {
	epoch             uint64
	answers, refusals atomic.Uint64
	reported          atomic.Bool // the core knows that a call was answered
	watches           atomic.Bool // a call without a deadline is being timed (see watch)
}

func (p *policy) current(e *endpoint) *period {
	if b := e.Attached.period.Load(); b != nil {
		return b
	}
	return p.begin(e, func(now *period) {})
}

// begin starts a new period of e. The new period is a copy of the previous one, modified by change.
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

// renew begins a new period if the core's epoch of the endpoint has changed. It must run on the
// policy's serializer.
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
		// The count is usually 0 already. Not storing 0 again avoids contention between CPU cores.
		if counter.consecutive.Load() != 0 && b.number >= counter.since.Load() {
			counter.consecutive.Store(0)
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
	case inconclusive:
	}
}

// fail counts a consecutive failure, and ejects the endpoint when the count reaches r.row. The
// count may be larger, because an update may have reduced r.row. If several calls end at the same
// time, only the one that resets the count ejects the endpoint.
func (b *period) fail(r *rules) {
	if r.row == 0 {
		return
	}
	p, e := b.policy, b.endpoint
	counter := &e.Attached.counter
	row := counter.consecutive.Add(1)
	if row >= r.row && counter.consecutive.CompareAndSwap(row, 0) {
		p.Event(func() {
			e.Unavailable = counter.unavailable()
			p.core.Failed(e, time.Now())
			p.applyOutcome()
		})
	} else if row == 1 {
		p.begin(e, func(b *period) { counter.since.Store(b.number) })
	}
}

// unavailable reports whether the last failed call had the code UNAVAILABLE. A call whose
// connection is lost has this code.
func (c *counter) unavailable() bool { return codes.Code(c.code.Load()) == codes.Unavailable }

// answered counts an answered call. It notifies the core of the first answer after the ejection.
func (b *period) answered() {
	b.proof.answers.Add(1)
	if !b.endpoint.Attached.unproven.Load() || !b.proof.reported.CompareAndSwap(false, true) {
		return
	}
	p := b.policy
	p.Event(func() {
		if p.current(b.endpoint).proof == b.proof {
			p.core.Answered(b.endpoint)
			p.applyOutcome()
		}
	})
}

// watch returns the Done function of a call. A call without a deadline may be an endless stream, so
// it counts as answered after one interval. At most one call of an endpoint is timed at a time.
func (b *period) watch(ctx context.Context) *func(balancer.DoneInfo) {
	r := b.policy.rules.Load()
	if _, has := ctx.Deadline(); has || r == nil || !b.proof.watches.CompareAndSwap(false, true) {
		return &b.ended
	}
	timer := time.AfterFunc(r.interval, b.answered)
	done := func(info balancer.DoneInfo) {
		timer.Stop()
		b.proof.watches.Store(false)
		b.count(info)
	}
	return &done
}
