package pickfirst

import (
	"sync/atomic"

	"google.golang.org/grpc/balancer"
)

// calls counts the calls on one connection. The core wants to know when the first response arrives
// and, once the connection is lost, when the last call has ended.
type calls struct {
	sub      *subchannel
	open     atomic.Int64 // calls in flight, plus one until awaitCalls
	answered atomic.Bool
	done     func(balancer.DoneInfo)
	reported bool // CallsEnded has been called; guarded by the serializer
}

func newCalls(s *subchannel) *calls {
	c := &calls{sub: s}
	c.open.Store(1)
	c.done = func(info balancer.DoneInfo) {
		if info.BytesReceived && !c.answered.Swap(true) {
			c.enqueue(func(p *policy) {
				if s.calls == c {
					p.act(p.core.Answered(s.index))
				}
			})
		}
		c.end()
	}
	return c
}

func (c *calls) end() {
	if c.open.Add(-1) > 0 {
		return
	}
	c.enqueue(func(p *policy) {
		// If a call was picked just before the picker was replaced, it may begin and end after all
		// the others.
		if !c.reported {
			c.reported = true
			p.act(p.core.CallsEnded(c.sub.index, c.answered.Load()))
		}
	})
}

func (c *calls) enqueue(f func(*policy)) {
	p := c.sub.policy
	p.serial.Enqueue(func() {
		if c.sub.index != removedIndex {
			f(p)
		}
	})
}

// awaitCalls is called when the connection is lost. If READY was never published for it, there were
// no calls.
func (s *subchannel) awaitCalls() {
	c := s.calls
	if c == nil {
		c = newCalls(s)
	}
	c.end()
}

type countedPicker struct {
	picker balancer.Picker
	calls  *calls
}

func (c *countedPicker) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	result, err := c.picker.Pick(info)
	if err != nil {
		return result, err
	}
	c.calls.open.Add(1)
	if before := result.Done; before != nil {
		result.Done = func(info balancer.DoneInfo) {
			before(info)
			c.calls.done(info)
		}
	} else {
		result.Done = c.calls.done
	}
	return result, nil
}
