package weightedtarget

import (
	"maps"
	"slices"

	core "github.com/understudy-lb/understudy/internal/core/weightedtarget"
	"github.com/understudy-lb/understudy/internal/shell"
)

// rebalance makes the shares of zones follow what has failed. A child that is updated may report at once,
// and so end here in the middle of the actions: its report counts once these are done.
func (p *policy) rebalance() {
	if p.rebalancing {
		return
	}
	p.rebalancing = true
	for actions := p.core.Rebalance(); len(actions) > 0; actions = p.core.Rebalance() {
		p.do(actions)
	}
	p.rebalancing = false
}

// capacity returns that of a target, 0 where it has no endpoint: a standby of many endpoints gets a part of
// them, and an endpoint that two zones have is in the first.
func (p *policy) capacity(name string) float64 {
	if len(p.groups[name]) == 0 {
		return 0
	}
	return p.config.Targets[name].Capacity // 0 for one that is retained
}

// partsOfZones is parts of what is balanced: of the capacity of all targets that there are. By shares
// a zone that has failed would count for nothing.
func (p *policy) partsOfZones() (ready, unproven float64) {
	all := 0.0
	for name, c := range p.children {
		capacity := p.capacity(name)
		switch p.core.CountsAs(name) {
		case core.Ready:
			tier := shell.TierOf(c.counts.Picker)
			all += capacity
			ready += capacity * tier.ReadyPart
			unproven += capacity * tier.UnprovenPart
		case core.TransientFailure:
			all += capacity
		default:
			all += capacity * c.lacks
		}
	}
	if all == 0 { // the source says that nothing can take calls, and yet something is READY
		return 1, 0
	}
	return ready / all, unproven / all
}

// balance returns what the configuration says of zones, nil for nothing.
func (p *policy) balance() *core.Balance {
	config := p.config
	if config.Balance == nil {
		return nil
	}
	names := slices.Sorted(maps.Keys(config.Balance.Zones))
	b := &core.Balance{Own: slices.Index(names, config.Balance.Own), Zones: make([]core.Zone, len(names))}
	for i, name := range names {
		b.Zones[i] = core.Zone{Callers: config.Balance.Zones[name].Callers, Capacities: make(map[string]float64)}
	}
	for name, target := range config.Targets {
		if i, ok := slices.BinarySearch(names, target.Zone); ok {
			b.Zones[i].Capacities[name] = p.capacity(name)
		}
	}
	return b
}
