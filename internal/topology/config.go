package topology

import (
	"encoding/json"
	"fmt"

	"github.com/understudy-lb/understudy/internal/lbconfig"
)

// The names of the policies in a tree. They are literals because this package does not import the
// policies.
const (
	priorityName           = "understudy_priority"
	outlierDetectionName   = "understudy_outlier_detection"
	dropName               = "understudy_drop"
	weightedTargetName     = "understudy_weighted_target"
	weightedRoundRobinName = "understudy_weighted_round_robin"
	pickFirstName          = "understudy_pick_first"
)

// retention turns off the retention of removed children. Generated names are never reused (decision
// 3), so a removed child cannot come back.
const retention lbconfig.Duration = 0

// startPoint makes each client of a fleet start its round robin at a different point, so that the
// clients do not all send their first calls to the heaviest endpoint.
const startPoint = lbconfig.StartRandom

// priorityChild describes a child of understudy_priority.
type priorityChild struct {
	name               string
	title              string // display name
	cluster            string
	further            bool   // whether it belongs to the same source priority as the child before it, as another near group
	why                string // why no endpoint can take calls, "" if one can
	ignoreReresolution bool
	drops              []lbconfig.DropCategory
	localities         map[string]uint32 // weight of each locality, by name
	spread             *spread           // nil if calls are not balanced between zones
	outlierDetection   *OutlierDetection // from the priority's cluster; nil if the cluster does not configure it
}

// encode returns the configuration of the tree for these priorities, in JSON.
func encode(priorities []priorityChild, settings Settings) json.RawMessage {
	top := settings.choice()
	top.Children = make(map[string]lbconfig.PriorityChild, len(priorities))
	top.Priorities = make([]string, 0, len(priorities))
	top.RemovedChildRetention = retention
	number, split := -1, false // index of the current priority of the source
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
		top.SourcePriorities = nil // omit the default: no priority is split
	}
	encoded, err := json.Marshal(lbconfig.Named(priorityName, top))
	if err != nil {
		panic(fmt.Sprintf("topology: a configuration of strings and numbers does not encode: %v", err))
	}
	return encoded
}

// policy returns the configuration of the policy below understudy_outlier_detection, with leaf as
// the policy of each locality.
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
