package pickfirst

import (
	"math/rand/v2"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/resolver"

	core "github.com/understudy-lb/understudy/internal/core/pickfirst"
	"github.com/understudy-lb/understudy/internal/lb/shell"
	"github.com/understudy-lb/understudy/internal/net/xnet"
)

// open creates the subchannel. refusals is how often NewSubConn has failed already. This runs on
// the serializer.
func (s *subchannel) open(address []resolver.Address, refusals int) {
	conn, err := s.policy.cc.NewSubConn(address, balancer.NewSubConnOptions{StateListener: s.changed})
	if err == nil {
		s.conn = conn
		if counted, ok := conn.(shell.Counted); ok {
			counted.AddUser(s)
		}
		conn.Connect()
		return
	}
	s.policy.serial.Enqueue(func() { s.policy.report(s, core.TransientFailure, err) })
	u := &pendingSubConn{sub: s, address: address, refusals: refusals + 1}
	u.timer = time.AfterFunc(xnet.Backoff(refusals, rand.Float64()), func() { s.policy.serial.Run(u.rest) })
	s.conn = u
}

// pendingSubConn takes the place of a subchannel that gRPC wouldn't create, which can happen while
// a channel is closing. To the core, it looks like a subchannel in backoff. We retry indefinitely
// (A62), and keep doing so if the next list contains the same address.
type pendingSubConn struct {
	balancer.SubConn // nil, because only Connect and Shutdown are ever called

	sub      *subchannel
	address  []resolver.Address
	refusals int
	timer    *time.Timer
	rested   bool
}

func (u *pendingSubConn) Connect() {
	if u.rested {
		u.sub.open(u.address, u.refusals)
	}
}

func (u *pendingSubConn) rest() {
	u.rested = true
	u.sub.policy.report(u.sub, core.Idle, nil)
}

// Shutdown stops the retries. If the timer has already fired, its event does nothing because the
// subchannel's index is gone by then.
func (u *pendingSubConn) Shutdown() { u.timer.Stop() }
