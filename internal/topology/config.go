package topology

import (
	"encoding/json"
	"fmt"

	"github.com/understudy-lb/understudy/internal/lbconfig"
)

// The names of the policies of a tree, those under which they register
// themselves. They are written out because this package does not import them.
const (
	priorityName           = "understudy_priority"
	outlierDetectionName   = "understudy_outlier_detection"
	dropName               = "understudy_drop"
	weightedTargetName     = "understudy_weighted_target"
	weightedRoundRobinName = "understudy_weighted_round_robin"
	pickFirstName          = "understudy_pick_first"
)

// retention is how long a removed child is kept: not at all, because generated
// names are never used again (decision 3), so the child could not come back.
const retention lbconfig.Duration = 0

// startPoint makes each client of a fleet begin its turns at another point, so that
// they do not all make their first calls to the heaviest endpoint.
const startPoint = lbconfig.StartRandom

// priorityChild is one priority of the tree, a child of understudy_priority.
type priorityChild struct {
	name               string
	title              string // for people
	cluster            string // that it is of
	further            bool   // a near group of the same priority of the source as the one before
	why                string // none of it can take calls, "" where some can
	ignoreReresolution bool
	drops              []lbconfig.DropCategory
	localities         map[string]uint32 // name to weight
	spread             *spread           // nil unless calls are balanced
	outlierDetection   *OutlierDetection // of its cluster, nil where that says nothing
}

// encode returns the configuration of the tree over priorities, in order.
func encode(priorities []priorityChild, settings Settings) json.RawMessage {
	top := settings.choice()
	top.Children = make(map[string]lbconfig.PriorityChild, len(priorities))
	top.Priorities = make([]string, 0, len(priorities))
	top.RemovedChildRetention = retention
	number, split := -1, false // of the priority of the source
	for _, p := range priorities {
		if split = split || p.further; !p.further {
			number++
		}
		top.SourcePriorities = append(top.SourcePriorities, number)
		top.Priorities = append(top.Priorities, p.name)
		top.Children[p.name] = lbconfig.PriorityChild{
			Config:                     settings.outlierDetection(p.outlierDetection, p.policy(settings.leaf())),
			IgnoreReresolutionRequests: p.ignoreReresolution,
		}
	}
	if !split {
		top.SourcePriorities = nil // each is its own
	}
	encoded, err := json.Marshal(lbconfig.Named(priorityName, top))
	if err != nil {
		panic(fmt.Sprintf("topology: a configuration of strings and numbers does not encode: %v", err))
	}
	return encoded
}

// policy returns the policy below understudy_outlier_detection in one priority, with
// leaf as the policy of each locality.
func (p priorityChild) policy(leaf lbconfig.Policy) lbconfig.Policy {
	targets := make(map[string]lbconfig.Target, len(p.localities))
	for name, weight := range p.localities {
		target := lbconfig.Target{Weight: weight, ChildPolicy: leaf}
		if p.spread != nil {
			at := p.spread.of[name]
			target.Zone, target.Capacity = at.zone, float64(at.capacity)
		}
		targets[name] = target
	}
	localities := &lbconfig.WeightedTarget{Targets: targets, StartPoint: startPoint, RemovedChildRetention: retention}
	if p.spread != nil {
		localities.Balance = &lbconfig.Balance{Own: p.spread.own, Zones: p.spread.zones}
	}
	return lbconfig.Named(dropName, &lbconfig.Drop{
		DropCategories: p.drops,
		ChildPolicy:    lbconfig.Named(weightedTargetName, localities),
	})
}
