package weightedtarget

import (
	"maps"
	"slices"

	core "github.com/understudy-lb/understudy/internal/core/weightedtarget"
	"github.com/understudy-lb/understudy/internal/shell"
)

// rebalance adapts the shares of the zones when endpoints have failed or recovered. It repeats this
// until nothing changes, because children may report while they are updated.
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

// capacity returns the capacity of a target, which is 0 if the target has no endpoints. A target
// may have none because a standby uses only some endpoints, or because they are also listed in
// another zone.
func (p *policy) capacity(name string) float64 {
	if len(p.groups[name]) == 0 {
		return 0
	}
	return p.config.Targets[name].Capacity // 0 for a removed target
}

// partsOfZones does the same as parts for targets that are balanced between zones. Instead of
// weights, it uses capacities, because a target in a failed zone has no share of the calls.
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
	if all == 0 { // none of the READY targets has capacity
		return 1, 0
	}
	return ready / all, unproven / all
}

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
