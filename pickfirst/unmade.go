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

// open creates the subchannel and connects it, in an event. refusals counts gRPC's earlier errors.
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

// unmade replaces a subchannel that gRPC failed to create, for example because the channel is being
// closed. The core receives a failed attempt and the end of a backoff, as for a real subchannel.
// The failure follows its address through later lists, and the address is retried forever (A62).
type unmade struct {
	balancer.SubConn // always nil; the policy does not call its other methods

	sub      *subchannel
	address  resolver.Address
	refusals int
	timer    *time.Timer
	rested   bool // the backoff has ended
}

// Connect tries again in an event after the backoff. During the backoff it does nothing, as for a
// real subchannel.
func (u *unmade) Connect() {
	if u.rested {
		u.sub.open(u.address, u.refusals)
	}
}

func (u *unmade) rest() {
	u.rested = true
	u.sub.policy.report(u.sub, core.Idle, nil)
}

// Shutdown ends the attempts. If the timer has already fired, it has no effect, because the
// subchannel is gone.
func (u *unmade) Shutdown() { u.timer.Stop() }
