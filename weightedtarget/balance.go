package weightedtarget

import (
	"maps"
	"slices"

	"github.com/understudy-lb/understudy/internal/core/balance"
	core "github.com/understudy-lb/understudy/internal/core/weightedtarget"
	"github.com/understudy-lb/understudy/internal/lbconfig"
	"github.com/understudy-lb/understudy/internal/shell"
)

// rebalance makes the shares of zones follow what has failed.
func (p *policy) rebalance() { p.do(p.core.Rebalance(), p.state, p.groups) }

// partsOfZones is parts of what is balanced: of the capacity of all targets that there are. By shares
// a zone that has failed would count for nothing.
func (p *policy) partsOfZones() (ready, unproven float64) {
	all := 0.0
	for name, c := range p.children {
		capacity := p.config.Targets[name].Capacity // 0 for one that is retained
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

// balanceOf returns what a configuration says of zones, nil for nothing.
func balanceOf(config *lbconfig.WeightedTarget) *core.Balance {
	if config.Balance == nil {
		return nil
	}
	names := slices.Sorted(maps.Keys(config.Balance.Zones))
	b := &core.Balance{Own: slices.Index(names, config.Balance.Own), Zones: make([]core.Zone, len(names)), Shares: shares}
	for i, name := range names {
		b.Zones[i] = core.Zone{Callers: config.Balance.Zones[name].Callers, Capacities: make(map[string]float64)}
	}
	for name, target := range config.Targets {
		if i, ok := slices.BinarySearch(names, target.Zone); ok {
			b.Zones[i].Capacities[name] = target.Capacity
		}
	}
	return b
}

func shares(capacity, callers []float64, own int) []float64 {
	zones := make([]balance.Zone, len(capacity))
	for i := range zones {
		zones[i] = balance.Zone{Capacity: capacity[i], Callers: callers[i]}
	}
	return balance.Shares(zones, own)
}
