package topology

import (
	"encoding/json"
	"fmt"
)

// The names of the policies of a tree, those under which they register
// themselves. They are written out because this package does not import them.
const (
	priorityName           = "understudy_priority"
	dropName               = "understudy_drop"
	weightedTargetName     = "understudy_weighted_target"
	weightedRoundRobinName = "understudy_weighted_round_robin"
)

// retention is how long a removed child is kept: not at all, because generated
// names are never used again (decision 3), so the child could not come back.
const retention = "0s"

// startPoint makes each client of a fleet begin its turns somewhere else, so that
// they do not all make their first calls to the heaviest endpoint.
const startPoint = "random"

// policies is a list of policies in JSON, [{"name": {…}}], with one element.
type policies []map[string]any

func policy(name string, config any) policies { return policies{{name: config}} }

// priorityConfig configures understudy_priority (gRFC A56, "LB Policy
// Configuration").
type priorityConfig struct {
	Children              map[string]priorityChild `json:"children"`
	Priorities            []string                 `json:"priorities"`
	RemovedChildRetention string                   `json:"removedChildRetention"`
}

type priorityChild struct {
	Config                     policies `json:"config"`
	IgnoreReresolutionRequests bool     `json:"ignoreReresolutionRequests"`
}

// dropConfig configures understudy_drop.
type dropConfig struct {
	DropCategories []dropCategory `json:"dropCategories"`
	ChildPolicy    policies       `json:"childPolicy"`
}

type dropCategory struct {
	Category           string `json:"category"`
	RequestsPerMillion uint32 `json:"requestsPerMillion"`
}

// weightedTargetConfig configures understudy_weighted_target (gRFC A28).
type weightedTargetConfig struct {
	Targets               map[string]weightedTarget `json:"targets"`
	StartPoint            string                    `json:"startPoint"`
	RemovedChildRetention string                    `json:"removedChildRetention"`
}

type weightedTarget struct {
	Weight      uint32   `json:"weight"`
	ChildPolicy policies `json:"childPolicy"`
}

// weightedRoundRobinConfig configures understudy_weighted_round_robin (gRFC A34).
type weightedRoundRobinConfig struct {
	StartPoint string `json:"startPoint"`
}

// group is one priority, a child of understudy_priority.
type group struct {
	name               string
	ignoreReresolution bool
	drops              []dropCategory
	localities         map[string]uint32 // name to weight
}

// encode returns the configuration of the tree over groups, in priority order.
func encode(groups []group) json.RawMessage {
	top := priorityConfig{
		Children:              make(map[string]priorityChild, len(groups)),
		Priorities:            make([]string, 0, len(groups)),
		RemovedChildRetention: retention,
	}
	for _, g := range groups {
		top.Priorities = append(top.Priorities, g.name)
		top.Children[g.name] = priorityChild{
			Config:                     g.policies(),
			IgnoreReresolutionRequests: g.ignoreReresolution,
		}
	}
	encoded, err := json.Marshal(policy(priorityName, top))
	if err != nil {
		panic(fmt.Sprintf("topology: a configuration of strings and numbers does not encode: %v", err))
	}
	return encoded
}

// policies returns what is below understudy_priority in one priority.
func (g group) policies() policies {
	leaf := policy(weightedRoundRobinName, weightedRoundRobinConfig{StartPoint: startPoint})
	targets := make(map[string]weightedTarget, len(g.localities))
	for name, weight := range g.localities {
		targets[name] = weightedTarget{Weight: weight, ChildPolicy: leaf}
	}
	drops := g.drops
	if drops == nil {
		drops = []dropCategory{}
	}
	return policy(dropName, dropConfig{
		DropCategories: drops,
		ChildPolicy: policy(weightedTargetName, weightedTargetConfig{
			Targets:               targets,
			StartPoint:            startPoint,
			RemovedChildRetention: retention,
		}),
	})
}
