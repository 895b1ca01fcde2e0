package pickfirst

import (
	"math/rand/v2"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	core "github.com/understudy-lb/understudy/internal/core/pickfirst"
	"github.com/understudy-lb/understudy/internal/lb/serial"
	"github.com/understudy-lb/understudy/internal/lb/shell"
	"github.com/understudy-lb/understudy/internal/net/xnet"
)

func (p *policy) act(actions []core.Action) {
	for _, a := range actions {
		switch a.Kind {
		case core.Connect:
			p.connect(a.Index)
		case core.Shutdown:
			p.entries[a.Index].shutdown()
		case core.StartTimer:
			p.startTimer()
		case core.StopTimer:
			p.timer.Stop()
		case core.Publish:
			p.publish(a)
		case core.WatchHealth:
			sub := p.entries[a.Index].sub
			sub.conn.RegisterHealthListener(sub.healthChanged)
		case core.Resolve:
			p.cc.ResolveNow(resolver.ResolveNowOptions{})
		case core.Backoff:
			p.entries[a.Index].sub.backOff(a.Count)
		case core.AwaitCalls:
			p.entries[a.Index].sub.awaitCalls()
		case core.Renew:
			p.renew(a.Index)
		}
	}
}

func (p *policy) publish(a core.Action) {
	switch a.State {
	case core.Idle:
		p.cc.UpdateState(balancer.State{ConnectivityState: connectivity.Idle, Picker: &idlePicker{policy: p}})
	case core.Connecting:
		p.cc.UpdateState(balancer.State{ConnectivityState: connectivity.Connecting, Picker: queue})
	case core.Ready:
		s := p.entries[a.Index].sub
		switch {
		case !a.Counted:
			s.calls = nil
		case s.calls == nil:
			s.calls = newCalls(s)
		}
		p.publishReady(s)
	case core.TransientFailure:
		p.cc.UpdateState(balancer.State{ConnectivityState: connectivity.TransientFailure, Picker: failing(a.Err)})
	}
}

func (p *policy) publishReady(s *subchannel) {
	var picker balancer.Picker
	if counted, ok := s.conn.(shell.Counted); ok {
		picker = counted.Picker()
	} else {
		picker = &shell.Fixed{SubConn: s.conn}
	}
	if s.calls != nil {
		picker = &countedPicker{picker, s.calls}
	}
	p.cc.UpdateState(balancer.State{ConnectivityState: connectivity.Ready, Picker: picker})
}

func (s *subchannel) PickerChanged() {
	p := s.policy
	p.serial.Enqueue(func() {
		if p.core.InUse(s.index) {
			p.publishReady(s)
		}
	})
}

func (p *policy) connect(i int) {
	e := &p.entries[i]
	if e.sub != nil {
		e.sub.conn.Connect()
		return
	}
	e.sub = &subchannel{policy: p, index: i}
	e.sub.open(e.address[:], 0)
}

// renew creates the new subchannel before it shuts down the old one, because outlier detection
// forgets endpoints without a subchannel.
func (p *policy) renew(i int) {
	old := p.entries[i]
	p.entries[i].sub = nil
	p.connect(i)
	old.shutdown()
}

type subchannel struct {
	policy *policy
	conn   balancer.SubConn // a pendingSubConn if gRPC wouldn't create one
	index  int              // index of the address in the list, or removedIndex after Shutdown and Close; guarded by the serializer
	rest   serial.Timer
	calls  *calls // nil if the calls on this connection aren't counted
}

const removedIndex = -1

func (e *entry) shutdown() {
	if e.sub != nil {
		e.sub.index = removedIndex
		e.sub.rest.Stop()
		e.sub.conn.Shutdown()
		e.sub = nil
	}
}

// changed is called by gRPC, which doesn't hold any lock at that point.
func (s *subchannel) changed(state balancer.SubConnState) {
	now := stateOf(state.ConnectivityState)
	if now == core.None {
		return
	}
	s.policy.serial.Run(func() { s.policy.report(s, now, state.ConnectionError) })
}

func (p *policy) report(s *subchannel, now core.State, err error) {
	if s.index != removedIndex {
		p.act(p.core.Report(time.Since(epoch), s.index, now, err))
		if now != core.Ready {
			s.calls = nil
		}
	}
}

var epoch = time.Now()

// backOff is for established connections that have ended. gRPC itself doesn't back off in that
// case.
func (s *subchannel) backOff(attempt int) {
	s.rest.Start(&s.policy.serial, xnet.Backoff(attempt, rand.Float64()), func() { s.policy.report(s, core.Idle, nil) })
}

// healthChanged is called by gRPC with a lock held that RegisterHealthListener needs, so it can
// only queue an event.
func (s *subchannel) healthChanged(state balancer.SubConnState) {
	now := stateOf(state.ConnectivityState)
	p := s.policy
	p.serial.Enqueue(func() {
		if s.index != removedIndex {
			p.act(p.core.Health(s.index, now, state.ConnectionError))
		}
	})
}
