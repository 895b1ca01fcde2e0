package weightedtarget

import (
	"maps"
	"slices"

	core "github.com/understudy-lb/understudy/internal/core/weightedtarget"
)

// rebalance changes the shares of the zones after endpoints have failed or recovered. It repeats
// this until nothing changes, because children may report new states while they are updated.
func (p *policy) rebalance() {
	if p.rebalancing {
		return
	}
	p.rebalancing = true
	for actions := p.core.Rebalance(); len(actions) > 0; actions = p.core.Rebalance() {
		p.apply(actions)
	}
	p.rebalancing = false
}

// capacity returns the capacity of a target, which is 0 if the target has no endpoints. A target
// may have no endpoints because a standby uses only some of them, or because its endpoints are also
// listed in another zone.
func (p *policy) capacity(name string) float64 {
	if len(p.groups[name]) == 0 {
		return 0
	}
	return p.config.Targets[name].Capacity // 0 for a removed target
}

func (p *policy) coreBalance() *core.Balance {
	config := p.config
	if config.Balance == nil {
		return nil
	}
	names := slices.Sorted(maps.Keys(config.Balance.Zones))
	balance := &core.Balance{ClientZone: slices.Index(names, config.Balance.Own), Zones: make([]core.Zone, len(names))}
	for i, name := range names {
		balance.Zones[i] = core.Zone{Callers: config.Balance.Zones[name].Callers, Capacities: make(map[string]float64)}
	}
	for name, target := range config.Targets {
		if i, ok := slices.BinarySearch(names, target.Zone); ok {
			balance.Zones[i].Capacities[name] = p.capacity(name)
		}
	}
	return balance
}
