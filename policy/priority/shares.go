package priority

import (
	"sync/atomic"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"

	core "github.com/understudy-lb/understudy/internal/core/priority"
	"github.com/understudy-lb/understudy/internal/core/share"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
)

// shares decides, if there's overflow, which READY child a call goes to. It's still the core that
// decides which children get connected, and which priority is in use (the highest READY one, if
// there is any).
type shares struct {
	start    time.Time
	marks    atomic.Bool // subchannels are wrapped, so that we know their endpoints; stays true once set
	children map[string]*childShare
	inner    bool   // there's another priority policy with overflow above
	wanted   string // we want one more priority below this one, unless it's ""
	offers   bool   // the child in use is READY, so calls are offered to all READY children
	shed     shed
	outage   outage
}

func (p *policy) beginShares() {
	p.shares.inner = stateattr.IsBelowOverflow(p.state)
	if p.config.Overflow {
		p.shares.marks.Store(true)
		p.childState = stateattr.SetBelowOverflow(p.childState)
	} else {
		clear(p.shares.children)
		p.shares.outage = outage{}
		p.meter.setShares(nil)
	}
}

func (p *policy) shareOf(name string) *childShare {
	c := p.shares.children[name]
	if c == nil {
		config := share.Config{Ramp: time.Duration(p.config.Ramp), Uneven: p.config.PerPriority}
		c = newChildShare(p.shares.start, config, func() { p.Event(p.settle) })
		p.shares.children[name] = c
	}
	return c
}

func (p *policy) settle() {
	if !p.Updating() { // during an update, leave it to End
		p.settleNow()
	}
}

func (p *policy) settleNow() {
	if !p.config.Overflow {
		return
	}
	var returned []string
	for _, name := range p.config.Priorities {
		state, exists := p.core.State(name)
		if exists && p.shareOf(name).Note(time.Since(p.shares.start), state == core.Ready) {
			returned = append(returned, name)
		}
	}
	p.updateLast()
	ready := p.readyChildren()
	for _, name := range returned {
		p.noteReturn(name, ready)
	}
	p.want()
	p.shares.offers = p.published.ConnectivityState == connectivity.Ready
	for _, name := range ready {
		if p.takesCalls(name) {
			p.removeLimit(name)
		}
	}
	shares := make(map[labels]*childShare)
	for _, name := range ready {
		shares[labels{p.Options.Target.String(), p.title(name)}] = p.shares.children[name]
		p.logShare(name)
	}
	p.meter.setShares(shares)
	p.logOutage(ready)
	p.Publish()
}

func (p *policy) readyChildren() (names []string) {
	for _, name := range p.config.Priorities {
		if c := p.shares.children[name]; c != nil && c.Ready {
			names = append(names, name)
		}
	}
	return names
}

func (p *policy) order() (order []share.Place) {
	for _, name := range p.config.Priorities {
		place := share.Place{Awaited: p.core.Awaited(name)}
		if c := p.shares.children[name]; c != nil && c.Ready {
			place = share.Place{Ready: true, Standing: c.current()}
		}
		order = append(order, place)
	}
	return order
}

func (p *policy) updateLast() {
	last := share.Last(p.order())
	for n, name := range p.config.Priorities {
		if c := p.shares.children[name]; c != nil && c.Ready {
			c.with(func(s *share.Share, now time.Duration) { s.SetLast(now, n == last) })
		}
	}
}

func (p *policy) noteReturn(name string, ready []string) {
	c, now := p.shares.children[name], time.Since(p.shares.start)
	isStart := !p.shares.offers || now <= time.Duration(p.config.FailoverTimeout)
	if c.MayBeCold(name == ready[len(ready)-1], isStart) {
		c.with(func(s *share.Share, now time.Duration) { s.Returned(now, now-c.LostAt) })
	}
}

// want asks for another priority if a READY one can't carry its calls. It goes below the lowest one
// for which that's true.
func (p *policy) want() {
	below := ""
	if n := share.Short(p.order()); n >= 0 {
		below = p.config.Priorities[n]
	}
	if p.shares.wanted != below {
		p.shares.wanted = below
		p.apply(p.core.WantStandbyBelow(below))
	}
}

// takesCalls is true for the highest READY child. If that one doesn't take all calls, it's true for
// the next, and so on.
func (p *policy) takesCalls(name string) bool {
	if !p.shares.offers {
		return false
	}
	for _, above := range p.readyChildren() {
		if above == name {
			return true
		}
		if p.shares.children[above].current().Depth == share.Whole {
			return false
		}
	}
	return false
}

func (p *policy) withShares(state balancer.State) balancer.State {
	if !p.shares.marks.Load() {
		return state
	}
	ready := p.readyChildren()
	if !p.config.Overflow || state.ConnectivityState != connectivity.Ready {
		state.Picker = unwrapper{state.Picker}
		return state
	}
	picker := &offerPicker{}
	if !p.shares.inner {
		picker.shed = p.countShed(ready[len(ready)-1])
	}
	for _, s := range p.order() {
		picker.awaited = picker.awaited || s.Awaited
	}
	for _, name := range ready {
		picker.offers = append(picker.offers, offer{p.shares.children[name], p.children[name].State().Picker})
	}
	return balancer.State{ConnectivityState: connectivity.Ready, Picker: picker}
}
