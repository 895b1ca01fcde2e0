package pickfirst

import (
	"math/rand/v2"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/resolver"

	core "github.com/understudy-lb/understudy/internal/core/pickfirst"
	"github.com/understudy-lb/understudy/internal/shell"
	"github.com/understudy-lb/understudy/internal/xnet"
)

// open makes gRPC create the subchannel, and connects, in an event. refusals is how
// often gRPC has refused so far.
func (s *subchannel) open(address resolver.Address, refusals int) {
	conn, err := s.policy.cc.NewSubConn([]resolver.Address{address}, balancer.NewSubConnOptions{StateListener: s.changed})
	if err == nil {
		s.conn = conn
		if counted, ok := conn.(shell.Counted); ok {
			counted.Picked(s)
		}
		conn.Connect()
		return
	}
	s.policy.serial.Enqueue(func() { s.policy.report(s, core.TransientFailure, err) })
	u := &unmade{sub: s, address: address, refusals: refusals + 1}
	u.timer = time.AfterFunc(xnet.Backoff(refusals, rand.Float64()), func() { s.policy.serial.Run(u.rest) })
	s.conn = u
}

// unmade stands in for a subchannel that gRPC refused to make. A channel refuses while
// it is being closed, and a parent may for reasons of its own. The core sees an attempt
// that failed, and the end of a backoff, as with subchannels that exist. The failure
// belongs to its address, wherever that is in later lists, and the address is tried
// again for ever (A62).
type unmade struct {
	balancer.SubConn // nil: nothing else is called

	sub      *subchannel
	address  resolver.Address
	refusals int
	timer    *time.Timer // of the backoff
	rested   bool        // it has ended
}

// Connect tries again, in an event, once the backoff has ended. Before that it does
// nothing, as with subchannels that exist: a list may come before the core has heard
// of the refusal.
func (u *unmade) Connect() {
	if u.rested {
		u.sub.open(u.address, u.refusals)
	}
}

func (u *unmade) rest() {
	u.rested = true
	u.sub.policy.report(u.sub, core.Idle, nil)
}

// Shutdown ends the attempts. A timer that has fired already finds its subchannel
// gone.
func (u *unmade) Shutdown() { u.timer.Stop() }
