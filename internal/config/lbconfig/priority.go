package lbconfig

import (
	"errors"
	"fmt"
	"slices"

	"google.golang.org/grpc/serviceconfig"

	"github.com/understudy-lb/understudy/internal/config/options"
)

// Priority configures understudy_priority (gRFC A56, "LB Policy Configuration").
type Priority struct {
	serviceconfig.LoadBalancingConfig `json:"-"`

	Children   map[string]PriorityChild `json:"children"`
	Priorities []string                 `json:"priorities"`
	// SourcePriorities is set if we split a priority of the source by distance from the client, so
	// that it has several entries in Priorities. There's one number for each entry: the index of
	// the source's priority, in ascending order. If it's empty, the policy behaves as in gRFC A56.
	SourcePriorities      []int    `json:"sourcePriorities,omitempty"`
	FailoverTimeout       Duration `json:"failoverTimeout" default:"10s" want:"a positive duration such as \"10s\""`
	ChildRetention        Duration `json:"childRetention" default:"15m"`
	RemovedChildRetention Duration `json:"removedChildRetention" default:"15m"`
	WarmStandby           uint32   `json:"warmStandby,omitempty"`
	Overflow              bool     `json:"overflow,omitempty"`
	Ramp                  Duration `json:"ramp,omitempty"`
	// PerPriority is set if the endpoint policy may pick by the contents of the call, as ring_hash
	// does. In that case, if an endpoint is fuller than the others, it may not be to blame.
	PerPriority bool `json:"perPriority,omitempty"`
}

type PriorityChild struct {
	Config                     Policy `json:"config"`
	IgnoreReresolutionRequests bool   `json:"ignoreReresolutionRequests"`
}

func (p *Priority) check() error {
	if err := options.Check(*p, options.ByName); err != nil {
		return err
	}
	if _, ok := p.Children[""]; ok {
		return errors.New("children: a child has an empty name")
	}
	first := make(map[string]int, len(p.Priorities))
	for i, name := range p.Priorities {
		if name == "" {
			return fmt.Errorf("priorities[%d]: an empty name given, want one of children", i)
		}
		if j, ok := first[name]; ok {
			return fmt.Errorf("priorities[%d]: %q given, which is already priorities[%d]", i, name, j)
		}
		if _, ok := p.Children[name]; !ok {
			return fmt.Errorf("priorities[%d]: %q given, which is not in children", i, name)
		}
		first[name] = i
	}
	if n := len(p.SourcePriorities); n > 0 && (n != len(p.Priorities) || !slices.IsSorted(p.SourcePriorities)) {
		return fmt.Errorf("sourcePriorities: %v given, want none, or a number for each of the %d priorities in ascending order", p.SourcePriorities, len(p.Priorities))
	}
	return nil
}
