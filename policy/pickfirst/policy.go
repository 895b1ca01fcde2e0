package pickfirst

import (
	"fmt"
	"hash/maphash"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/grpclog"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	core "github.com/understudy-lb/understudy/internal/core/pickfirst"
	"github.com/understudy-lb/understudy/internal/lb/serial"
)

var logger = grpclog.Component("understudy")

// policy is the balancer. There can be tens of thousands of these, one for each endpoint, so we
// keep it small and without a goroutine.
type policy struct {
	cc     balancer.ClientConn
	seed   maphash.Seed
	serial serial.Serializer

	// The following are only used in events.
	core    core.Core
	entries []entry
	timer   serial.Timer
	closed  bool
}

type entry struct {
	address [1]resolver.Address // an array, so that NewSubConn doesn't need a copy
	sub     *subchannel
}

// UpdateClientConnState sets the list of addresses. It returns an error if the list is empty, or if
// it gets the configuration of some other policy.
func (p *policy) UpdateClientConnState(state balancer.ClientConnState) error {
	var seed *maphash.Seed
	switch c := state.BalancerConfig.(type) {
	case nil:
	case *lbconfig.PickFirst:
		if c.ShuffleAddressList {
			seed = &p.seed
		}
	default:
		err := fmt.Errorf("pick_first: configuration is a %T, want one that this policy parsed: %w", c, balancer.ErrBadResolverState)
		p.serial.Do(func() { p.fail(err) })
		return err
	}
	list := addressesOf(state.ResolverState, seed)
	health := healthEnabled(state.ResolverState)
	p.serial.Do(func() { p.update(list, health) })
	if len(list) == 0 {
		return fmt.Errorf("pick_first: %v: %w", core.ErrNoAddresses, balancer.ErrBadResolverState)
	}
	return nil
}

func (p *policy) update(list []resolver.Address, health bool) {
	if p.closed {
		return
	}
	places := placesIn(p.entries, list)
	p.core.SetHealth(health)
	dropped, actions := p.core.Update(places)
	for _, i := range dropped {
		p.entries[i].shutdown()
	}
	entries := make([]entry, len(list))
	for i, place := range places {
		entries[i].address[0] = list[i]
		if place >= 0 && p.entries[place].sub != nil {
			entries[i].sub = p.entries[place].sub
			entries[i].sub.index = i
		}
	}
	p.entries = entries
	p.act(actions)
}

// ResolverError makes calls fail with err, unless one of the addresses we have may still work. It
// doesn't block, since a parent may call it from UpdateState.
func (p *policy) ResolverError(err error) {
	err = fmt.Errorf("name resolver error: %v", err) // don't wrap err: it may be a status error, see failing
	p.serial.Run(func() { p.fail(err) })
}

func (p *policy) fail(err error) {
	if !p.closed {
		p.act(p.core.Fail(err))
	}
}

// UpdateSubConnState is never used because every subchannel has a StateListener.
func (p *policy) UpdateSubConnState(balancer.SubConn, balancer.SubConnState) {}

func (p *policy) ExitIdle() { p.serial.Run(p.exitIdle) }

func (p *policy) exitIdle() {
	if !p.closed {
		p.act(p.core.ExitIdle())
	}
}

// ResetBackoff retries right away any address whose last attempt failed at least that long ago.
func (p *policy) ResetBackoff(atLeast time.Duration) {
	p.serial.Run(func() {
		if !p.closed {
			p.act(p.core.ResetBackoff(time.Since(epoch), atLeast))
		}
	})
}

func (p *policy) Close() {
	p.serial.Do(func() {
		p.closed = true
		p.timer.Stop()
		for i := range p.entries {
			p.entries[i].shutdown()
		}
	})
}

func (p *policy) startTimer() {
	p.timer.Start(&p.serial, core.AttemptDelay, func() { p.act(p.core.TimerFired()) })
}

var states = [...]core.State{
	connectivity.Idle:             core.Idle,
	connectivity.Connecting:       core.Connecting,
	connectivity.Ready:            core.Ready,
	connectivity.TransientFailure: core.TransientFailure,
}

func stateOf(s connectivity.State) core.State {
	if s < 0 || int(s) >= len(states) {
		return core.None
	}
	return states[s]
}
