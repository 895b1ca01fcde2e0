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

// refusals is the number of earlier failures of NewSubConn. This runs on the serializer.
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

// While a channel closes, gRPC may not create a subchannel; this takes its place. The core sees a
// subchannel in backoff after a failed attempt. We keep it if the address is also in the next list,
// and retry indefinitely (A62).
type pendingSubConn struct {
	balancer.SubConn // nil; only Connect and Shutdown are called

	sub      *subchannel
	address  []resolver.Address
	refusals int
	timer    *time.Timer
	rested   bool
}

// Connect tries again to create the subchannel. It has no effect during the backoff.
func (u *pendingSubConn) Connect() {
	if u.rested {
		u.sub.open(u.address, u.refusals)
	}
}

func (u *pendingSubConn) rest() {
	u.rested = true
	u.sub.policy.report(u.sub, core.Idle, nil)
}

// Shutdown ends the retries. If the timer has just fired, its event has no effect: the index of the
// subchannel is then gone.
func (u *pendingSubConn) Shutdown() { u.timer.Stop() }
