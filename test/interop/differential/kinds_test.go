package differential

import (
	"fmt"
	"strings"

	"google.golang.org/grpc/balancer/weightedtarget"
	_ "google.golang.org/grpc/xds" // registers grpc-go's priority_experimental

	"github.com/understudy-lb/understudy/policy/priority"
	ourweightedtarget "github.com/understudy-lb/understudy/policy/weightedtarget"
)

// priorityKind is the kind of our priority policy and grpc-go's. A command lists their children,
// the highest priority first, as in "a b". The child "a:other" has a policy of another type than
// "a". The policy ignores re-resolution requests of the child "a!". It closes removed children at
// once, as grpc-go does, unless the list ends with "retain".
var priorityKind = kind{ours: priority.Name, theirs: "priority_experimental", configure: configurePriority}

func configurePriority(s *side, children []string) string {
	retention := `, "removedChildRetention": "0s"`
	var configs, names []string
	for _, child := range children {
		if child == "retain" {
			retention = ""
			continue
		}
		child, ignored := strings.CutSuffix(child, "!")
		name, policy := s.childPolicy(child)
		configs = append(configs, fmt.Sprintf(`%q: {"config": %s, "ignoreReresolutionRequests": %t}`, name, policy, ignored))
		names = append(names, fmt.Sprintf("%q", name))
	}
	return fmt.Sprintf(`{"children": {%s}, "priorities": [%s]%s}`, strings.Join(configs, ","), strings.Join(names, ","), retention)
}

// targetKind is the kind of our weighted_target policy and grpc-go's. Their children have weights,
// as in "a=1 b:other=2".
var targetKind = kind{ours: ourweightedtarget.Name, theirs: weightedtarget.Name, configure: configureTargets}

func configureTargets(s *side, children []string) string {
	var configs []string
	for _, child := range children {
		child, weight, _ := strings.Cut(child, "=")
		name, policy := s.childPolicy(child)
		configs = append(configs, fmt.Sprintf(`%q: {"weight": %s, "childPolicy": %s}`, name, weight, policy))
	}
	return fmt.Sprintf(`{"targets": {%s}}`, strings.Join(configs, ","))
}

// childPolicy returns the name and the policy configuration of a child such as "a" or "a:other".
func (s *side) childPolicy(child string) (name, policy string) {
	name, stub, other := strings.Cut(child, ":")
	if !other {
		stub = "stub"
	}
	return name, fmt.Sprintf(`[{"%s_%s": {"id": %q}}]`, s.prefix, stub, child)
}
