package weightedtarget

import (
	"maps"
	"slices"

	core "github.com/understudy-lb/understudy/internal/core/weightedtarget"
	"github.com/understudy-lb/understudy/internal/lb/shell"
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

// readySharesOfZones does the same as readyShares for targets that are balanced between zones.
// Instead of weights, it uses capacities, because a target in a failed zone has no share of the
// calls.
func (p *policy) readySharesOfZones() (ready, unproven float64) {
	total := 0.0
	for name, c := range p.children {
		capacity := p.capacity(name)
		switch p.core.CountsAs(name) {
		case core.Ready:
			tier := shell.TierOf(c.effective.Picker)
			total += capacity
			ready += capacity * tier.ReadyShare
			unproven += capacity * tier.UnprovenShare
		case core.TransientFailure:
			total += capacity
		default:
			total += capacity * c.notReadyShare
		}
	}
	if total == 0 { // none of the READY targets has capacity
		return 1, 0
	}
	return ready / total, unproven / total
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
