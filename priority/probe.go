package priority

import (
	"slices"
	"sync/atomic"

	"google.golang.org/grpc/balancer"

	"github.com/understudy-lb/understudy/internal/shell"
)

// probeEvery is how many calls there are to one that goes to a child that is half-open.
const probeEvery = 100

// probes are the children that get a few of the calls, and how many calls there were. A
// child publishes a new picker in each interval in which it wants a call: the first call
// goes there. What else is published meanwhile goes on with the same probes, so that a
// child in use that often has a new picker does not send more calls there.
type probes struct {
	pickers []balancer.Picker
	calls   atomic.Uint64
}

// probedPickers returns the pickers of the children that the core wants probed.
func (p *policy) probedPickers() []balancer.Picker {
	var pickers []balancer.Picker
	for _, name := range p.core.Probed() {
		pickers = append(pickers, p.children[name].State().Picker)
	}
	return pickers
}

// probing returns state with a picker that gives a few calls to others.
func (p *policy) probing(state balancer.State, pickers ...balancer.Picker) balancer.State {
	if len(pickers) == 0 {
		p.probes = nil
		return state
	}
	if p.probes == nil || !slices.Equal(p.probes.pickers, pickers) {
		p.probes = &probes{pickers: pickers}
	}
	state.Picker = &probing{state.Picker, p.probes}
	return state
}

// probing is a picker that gives each of the probed children one call in a hundred, and
// the first.
type probing struct {
	balancer.Picker
	probes *probes
}

// Pick lets the picker of the child in use pick, or one that is probed. Where that has
// nothing to pick, the call is not to suffer from it.
func (p *probing) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	if i := (p.probes.calls.Add(1) - 1) % probeEvery; i < uint64(len(p.probes.pickers)) {
		if result, err := p.probes.pickers[i].Pick(info); err == nil {
			return result, nil
		}
	}
	return p.Picker.Pick(info)
}

// Failure returns what the picker of the child in use fails with; see shell.FailureOf.
func (p *probing) Failure() error { return shell.FailureOf(p.Picker) }

// Tier returns what the child in use says of its endpoints; see shell.TierOf.
func (p *probing) Tier() shell.Tier { return shell.TierOf(p.Picker) }
