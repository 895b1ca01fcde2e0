package differential

import (
	"fmt"
	"strings"

	"google.golang.org/grpc/balancer/weightedtarget"
	_ "google.golang.org/grpc/xds" // registers grpc-go's priority_experimental

	"github.com/understudy-lb/understudy/priority"
	ourweightedtarget "github.com/understudy-lb/understudy/weightedtarget"
)

// priorities compares the two priority policies. Their children are written as a list, such as "a
// b", the highest priority first. "a:other" has a child policy of another type. The re-resolution
// requests of "a!" are ignored. Removed children are closed at once, as in grpc-go, unless the list
// ends with "retain".
var priorities = kind{ours: priority.Name, theirs: "priority_experimental", configure: configurePriority}

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

// targets compares the two weighted_target policies. Their children have weights, as in "a=1
// b:other=2".
var targets = kind{ours: ourweightedtarget.Name, theirs: weightedtarget.Name, configure: configureTargets}

func configureTargets(s *side, children []string) string {
	var configs []string
	for _, child := range children {
		child, weight, _ := strings.Cut(child, "=")
		name, policy := s.childPolicy(child)
		configs = append(configs, fmt.Sprintf(`%q: {"weight": %s, "childPolicy": %s}`, name, weight, policy))
	}
	return fmt.Sprintf(`{"targets": {%s}}`, strings.Join(configs, ","))
}

// childPolicy splits a child, such as "a" or "a:other", into its name and its policy's name.
func (s *side) childPolicy(child string) (name, policy string) {
	name, stub, other := strings.Cut(child, ":")
	if !other {
		stub = "stub"
	}
	return name, fmt.Sprintf(`[{"%s_%s": {"id": %q}}]`, s.prefix, stub, child)
}
