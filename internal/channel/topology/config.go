package topology

import (
	"encoding/json"
	"fmt"

	"github.com/understudy-lb/understudy/internal/config/lbconfig"
)

// The names of the policies in a tree. They are repeated in this file, because this package must
// not import the policies.
const (
	priorityName           = "understudy_priority"
	outlierDetectionName   = "understudy_outlier_detection"
	dropName               = "understudy_drop"
	weightedTargetName     = "understudy_weighted_target"
	weightedRoundRobinName = "understudy_weighted_round_robin"
	endpointPolicyName     = "understudy_endpoint_policy"
	pickFirstName          = "understudy_pick_first"
)

// retention is how long a removed child is kept. Names of children are never reused, so a removed
// child cannot return.
const retention lbconfig.Duration = 0

// startPoint makes each client begin with a random endpoint. Otherwise, the first calls of all
// clients would go to the endpoint with the largest weight.
const startPoint = lbconfig.StartRandom

type priorityChild struct {
	name               string
	title              string // the name for users
	cluster            string
	continuesPriority  bool   // the child belongs to the same priority of the source as the previous child
	unusableReason     string // the reason why no endpoint can receive calls, or ""
	ignoreReresolution bool
	drops              []lbconfig.DropCategory
	localities         map[string]uint32
	outlierDetection   *OutlierDetection
}

func encode(priorities []priorityChild, settings Settings) json.RawMessage {
	top := settings.choice()
	top.Children = make(map[string]lbconfig.PriorityChild, len(priorities))
	top.Priorities = make([]string, 0, len(priorities))
	top.RemovedChildRetention = retention
	number, isSplit := -1, false // number is the source's priority to which the current child belongs
	for _, p := range priorities {
		if isSplit = isSplit || p.continuesPriority; !p.continuesPriority {
			number++
		}
		top.SourcePriorities = append(top.SourcePriorities, number)
		top.Priorities = append(top.Priorities, p.name)
		top.Children[p.name] = lbconfig.PriorityChild{
			Config:                     settings.outlierDetection(p.outlierDetection, p.policy(settings.leaf())),
			IgnoreReresolutionRequests: p.ignoreReresolution,
		}
	}
	if !isSplit {
		top.SourcePriorities = nil // this is the default if no priority is split
	}
	encoded, err := json.Marshal(lbconfig.MarshalOnlyPolicy(priorityName, top))
	if err != nil {
		panic(fmt.Sprintf("topology: a configuration of strings and numbers does not encode: %v", err))
	}
	return encoded
}

// policy returns the part of a priority's policy below understudy_outlier_detection. leaf is the
// policy of each locality.
func (p priorityChild) policy(leaf lbconfig.Policy) lbconfig.Policy {
	targets := make(map[string]lbconfig.Target, len(p.localities))
	for name, weight := range p.localities {
		targets[name] = lbconfig.Target{Weight: weight, ChildPolicy: leaf}
	}
	localities := &lbconfig.WeightedTarget{Targets: targets, StartPoint: startPoint, RemovedChildRetention: retention}
	return lbconfig.MarshalOnlyPolicy(dropName, &lbconfig.Drop{
		DropCategories: p.drops,
		ChildPolicy:    lbconfig.MarshalOnlyPolicy(weightedTargetName, localities),
	})
}
