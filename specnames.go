package understudy

import (
	"fmt"
	"strings"

	"google.golang.org/grpc/balancer"

	"github.com/understudy-lb/understudy/internal/shell"
	"github.com/understudy-lb/understudy/pickfirst"
	"github.com/understudy-lb/understudy/priority"
	"github.com/understudy-lb/understudy/weightedroundrobin"
	"github.com/understudy-lb/understudy/weightedtarget"
)

// SpecNameOption is an option of RegisterSpecNames.
type SpecNameOption func(*specNames)

type specNames struct {
	builders []balancer.Builder
	replace  map[string]bool // names that another package may hold
}

// ReplacePickFirst makes RegisterSpecNames register pick_first, too, in place of
// grpc-go's own. Every channel of the process that names no policy then uses it, and so
// do the leaves of stock policies such as round_robin. They keep what they have with
// grpc-go's: health listeners, shuffling, happy eyeballs. docs/pick-first.md lists what
// differs. The default is to leave grpc-go's.
func ReplacePickFirst() SpecNameOption {
	return func(s *specNames) { s.add("pick_first", pickfirst.Name, true) }
}

// ReplaceWeightedRoundRobin makes RegisterSpecNames register weighted_round_robin, too:
// gRFC A34's policy, which takes the weights from the resolver. If grpc-go's own is in
// the process, gRFC A58's of the same name, which takes them from the backends' load
// reports, it is replaced: A34's policy then reads configurations that meant that one,
// and ignores their fields.
func ReplaceWeightedRoundRobin() SpecNameOption {
	return func(s *specNames) { s.add("weighted_round_robin", weightedroundrobin.Name, true) }
}

func (s *specNames) add(name, policy string, replace bool) {
	s.builders = append(s.builders, shell.NewBuilder(policy, name))
	s.replace[name] = replace
}

// RegisterSpecNames registers the policies under the names of the specification as
// well: priority_experimental (gRFC A56) and weighted_target_experimental (gRFC A28),
// and with options pick_first and weighted_round_robin. So service configs that were
// written for those names work.
//
// gRPC's registry is one for the process, and not locked: call this at the top of main,
// before any channel is made. grpc-go's xDS stack registers the same names, and does
// not work with other policies in their place: where another package holds a name that
// no option replaces, nothing at all is registered, and the error lists each such name.
// A second call is no error.
func RegisterSpecNames(opts ...SpecNameOption) error {
	s := specNames{replace: make(map[string]bool)}
	s.add("priority_experimental", priority.Name, false)
	s.add("weighted_target_experimental", weightedtarget.Name, false)
	for _, opt := range opts {
		opt(&s)
	}
	var held []string
	for _, b := range s.builders {
		if other := balancer.Get(b.Name()); other != nil && !isOurs(other) && !s.replace[b.Name()] {
			held = append(held, fmt.Sprintf("%s (%T)", b.Name(), other))
		}
	}
	if len(held) > 0 {
		return fmt.Errorf("understudy: nothing registered, because other packages hold %s", strings.Join(held, ", "))
	}
	for _, b := range s.builders {
		balancer.Register(b)
	}
	return nil
}

// isOurs reports whether a builder is one of this module's.
func isOurs(b balancer.Builder) bool {
	_, ours := b.(shell.OwnsSubConns)
	return ours
}
