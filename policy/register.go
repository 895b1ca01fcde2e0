// Package policy registers the policies under the names that the specification gives them. Each
// policy also has a package of its own below this one. Importing that registers it under our own
// name.
package policy

import (
	"fmt"
	"strings"

	"google.golang.org/grpc/balancer"

	"github.com/understudy-lb/understudy/internal/lb/shell"
	"github.com/understudy-lb/understudy/policy/pickfirst"
	"github.com/understudy-lb/understudy/policy/priority"
	"github.com/understudy-lb/understudy/policy/weightedroundrobin"
	"github.com/understudy-lb/understudy/policy/weightedtarget"
)

// SpecNameOption is an option for RegisterSpecNames.
type SpecNameOption func(*specNames)

type specNames struct {
	builders []balancer.Builder
	replace  map[string]bool // names we may take over from another package
}

// ReplacePickFirst makes RegisterSpecNames also register pick_first, replacing grpc-go's policy.
// From then on, every channel whose service config doesn't select a policy uses ours, and so do
// built-in policies such as round_robin. Like grpc-go's, it supports health listeners, shuffling
// and Happy Eyeballs. The differences are listed in docs/pick-first.md.
func ReplacePickFirst() SpecNameOption {
	return func(s *specNames) { s.add("pick_first", pickfirst.Name, true) }
}

// ReplaceWeightedRoundRobin makes RegisterSpecNames also register weighted_round_robin, the policy
// of gRFC A34, which takes weights from the resolver. It replaces grpc-go's policy of the same name
// (gRFC A58), which takes weights from load reports. Note that service configs written for
// grpc-go's policy will then select ours, which ignores their fields.
func ReplaceWeightedRoundRobin() SpecNameOption {
	return func(s *specNames) { s.add("weighted_round_robin", weightedroundrobin.Name, true) }
}

func (s *specNames) add(name, policy string, replace bool) {
	s.builders = append(s.builders, shell.NewBuilder(policy, name))
	s.replace[name] = replace
}

// RegisterSpecNames registers the policies under their gRFC names as well: priority_experimental
// (gRFC A56), weighted_target_experimental (gRFC A28) and, with options, pick_first and
// weighted_round_robin.
//
// gRPC's registry is global and has no lock, so call this at the top of main, before any channel is
// created. grpc-go's xDS stack registers the same names and doesn't work with other policies under
// them. If another package has already registered a name, and no option says to replace it,
// RegisterSpecNames registers nothing and returns an error that lists these names. It may be called
// again.
func RegisterSpecNames(opts ...SpecNameOption) error {
	s := specNames{replace: make(map[string]bool)}
	s.add("priority_experimental", priority.Name, false)
	s.add("weighted_target_experimental", weightedtarget.Name, false)
	for _, opt := range opts {
		opt(&s)
	}
	var taken []string
	for _, b := range s.builders {
		if other := balancer.Get(b.Name()); other != nil && !isOurs(other) && !s.replace[b.Name()] {
			taken = append(taken, fmt.Sprintf("%s (%T)", b.Name(), other))
		}
	}
	if len(taken) > 0 {
		return fmt.Errorf("understudy: nothing registered, because other packages hold %s", strings.Join(taken, ", "))
	}
	for _, b := range s.builders {
		balancer.Register(b)
	}
	return nil
}

func isOurs(b balancer.Builder) bool {
	_, ours := b.(shell.OwnsSubConns)
	return ours
}
