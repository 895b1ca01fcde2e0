package outlierdetection

import (
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	core "github.com/understudy-lb/understudy/internal/core/outlierdetection"
	"github.com/understudy-lb/understudy/internal/lb/shell"
)

// period is a span of time in which calls to an endpoint begin. When a call ends, we need to know
// in which period it began to tell what the result means. For example, a success resets the count
// of consecutive failures only if the call began after the first of them. Similarly, if an endpoint
// was ejected and hasn't answered since, we only care about calls that began after the ejection. So
// the first failure begins a new period, and so do a lost connection and every change of the
// endpoint's state. A call's Done function belongs to the period in which the call began.
type period struct {
	policy   *policy
	endpoint *endpoint
	number   uint64
	ejection uint64                  // number of the period that began with the last ejection; 0 if the endpoint is in service
	returned bool                    // the next failure ejects the endpoint
	ended    func(balancer.DoneInfo) // the count method, as a value that we allocate only once
}

func (p *policy) current(e *endpoint) *period {
	if b := e.Attached.period.Load(); b != nil {
		return b
	}
	return p.begin(e, func(now *period) {})
}

// begin starts a new period, which is a copy of the previous one that's modified by change.
func (p *policy) begin(e *endpoint, change func(*period)) *period {
	for {
		before := e.Attached.period.Load()
		now := &period{policy: p, endpoint: e, number: 1}
		if before != nil {
			now.number, now.ejection, now.returned = before.number+1, before.ejection, before.returned
		}
		change(now)
		now.ended = now.count
		if e.Attached.period.CompareAndSwap(before, now) {
			return now
		}
	}
}

// stateChanged must run on the policy's serializer.
func (p *policy) stateChanged(e *endpoint) {
	p.begin(e, func(b *period) {
		switch e.State() {
		case core.InService:
			b.ejection = 0
		case core.Ejected:
			b.ejection = b.number
		case core.Returned:
		}
		b.returned = e.State() == core.Returned
	})
}

func (b *period) count(info balancer.DoneInfo) {
	r := b.policy.rules.Load()
	if r == nil {
		return
	}
	shell.Judge(&info)
	counter := &b.endpoint.Attached.counter
	switch r.of(&info) {
	case success:
		counter.successes.Add(1)
		// It's usually 0 already, and not storing another 0 avoids contention between cores.
		if counter.consecutive.Load() != 0 && b.number >= counter.since.Load() {
			counter.consecutive.Store(0)
		}
		if b.ejection != 0 {
			b.sinceEjection((*core.Core[endpointStats]).Answered)
		}
	case failure:
		counter.failures.Add(1)
		counter.code.Store(uint32(status.Code(info.Err)))
		if r.row > 0 && !b.wasLostToo(&info) {
			b.fail(r)
		}
	case inconclusive:
	}
}

// wasLostToo is true if the call was lost with its connection, and we've counted another lost call
// since it began. All calls of a connection are lost at once, so they count as one failure in a row.
func (b *period) wasLostToo(info *balancer.DoneInfo) bool {
	if info.BytesReceived || status.Code(info.Err) != codes.Unavailable {
		return false
	}
	lost := &b.endpoint.Attached.lost
	before := lost.Load()
	return b.number < before || !lost.CompareAndSwap(before, b.policy.begin(b.endpoint, func(*period) {}).number)
}

// fail counts a consecutive failure and ejects the endpoint if there are enough of them. The count
// can be above r.row, since an update may have lowered that. If several calls end at the same time,
// only the one that resets the count ejects the endpoint.
func (b *period) fail(r *rules) {
	p, e := b.policy, b.endpoint
	counter := &e.Attached.counter
	row := counter.consecutive.Add(1)
	if row >= r.row && counter.consecutive.CompareAndSwap(row, 0) {
		p.Event(func() {
			p.core.Failed(e, time.Now())
			p.applyOutcome()
		})
		return
	}
	if row == 1 {
		p.begin(e, func(b *period) { counter.since.Store(b.number) })
	}
	if b.returned {
		b.sinceEjection(failed)
	}
}

func failed(c *core.Core[endpointStats], e *endpoint) { c.Failed(e, time.Now()) }

// sinceEjection passes the result of a call that began after the last ejection to the core, unless
// the endpoint is in service again.
func (b *period) sinceEjection(tell func(*core.Core[endpointStats], *endpoint)) {
	p, e := b.policy, b.endpoint
	isCurrent := func() bool { return e.Attached.period.Load().ejection == b.ejection }
	if isCurrent() {
		p.Event(func() {
			if isCurrent() {
				tell(p.core, e)
				p.applyOutcome()
			}
		})
	}
}
