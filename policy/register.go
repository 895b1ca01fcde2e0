// Package policy registers the policies under the names of the specification. Each policy has a
// package below this one; importing it registers the policy under its own name.
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
	replace  map[string]bool // names under which a policy of another package may be replaced
}

// ReplacePickFirst makes RegisterSpecNames also register pick_first, in place of grpc-go's policy.
// Every channel whose service config selects no policy then uses our policy, and so do built-in
// policies such as round_robin. It supports health listeners, shuffling and Happy Eyeballs, as
// grpc-go's policy does. docs/pick-first.md lists the differences.
func ReplacePickFirst() SpecNameOption {
	return func(s *specNames) { s.add("pick_first", pickfirst.Name, true) }
}

// ReplaceWeightedRoundRobin makes RegisterSpecNames also register weighted_round_robin, the policy
// of gRFC A34, which takes weights from the resolver. It replaces grpc-go's policy of the same name
// (gRFC A58), which takes weights from load reports. Service configs for grpc-go's policy then
// select our policy, which ignores their fields.
func ReplaceWeightedRoundRobin() SpecNameOption {
	return func(s *specNames) { s.add("weighted_round_robin", weightedroundrobin.Name, true) }
}

func (s *specNames) add(name, policy string, replace bool) {
	s.builders = append(s.builders, shell.NewBuilder(policy, name))
	s.replace[name] = replace
}

// RegisterSpecNames also registers the policies under their gRFC names: priority_experimental (gRFC
// A56), weighted_target_experimental (gRFC A28) and, with options, pick_first and
// weighted_round_robin.
//
// gRPC's registry is global and has no lock: call RegisterSpecNames at the top of main, before any
// channel is created. grpc-go's xDS stack registers the same names and does not work with other
// policies under them. If another package has registered a name that no option replaces,
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
