package lbconfig

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/serviceconfig"
)

// Priority configures understudy_priority (gRFC A56, "LB Policy Configuration").
type Priority struct {
	serviceconfig.LoadBalancingConfig `json:"-"`

	Children              map[string]PriorityChild `json:"children"`
	Priorities            []string                 `json:"priorities"`
	FailoverTimeout       Duration                 `json:"failoverTimeout"`
	ChildRetention        Duration                 `json:"childRetention"`
	RemovedChildRetention Duration                 `json:"removedChildRetention"`
	FailbackDelay         Duration                 `json:"failbackDelay"`
	MinReady              float64                  `json:"minReady,omitempty"`
	MinReadyRecovery      float64                  `json:"minReadyRecovery,omitempty"`
}

// PriorityChild is one child.
type PriorityChild struct {
	Config                     Policy `json:"config"`
	IgnoreReresolutionRequests bool   `json:"ignoreReresolutionRequests"`
}

// NewPriority returns the defaults.
func NewPriority() *Priority {
	p := &Priority{}
	p.setDefaults()
	return p
}

func (p *Priority) setDefaults() {
	*p = Priority{
		FailoverTimeout:       Duration(10 * time.Second),
		ChildRetention:        Duration(15 * time.Minute),
		RemovedChildRetention: Duration(15 * time.Minute),
	}
}

func (p *Priority) check(string) error {
	if p.FailoverTimeout == 0 {
		return errors.New(`failoverTimeout: "0s" given, want a positive duration such as "10s"`)
	}
	if !(p.MinReady >= 0 && p.MinReady <= 1) {
		return fmt.Errorf("minReady: %v given, want a number from 0 to 1", p.MinReady)
	}
	if p.MinReadyRecovery != 0 && !(p.MinReadyRecovery >= p.MinReady && p.MinReadyRecovery <= 1) {
		return fmt.Errorf("minReadyRecovery: %v given, want a number from minReady, %v, to 1", p.MinReadyRecovery, p.MinReady)
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
			return fmt.Errorf("priorities[%d]: %q given again, is priorities[%d] already", i, name, j)
		}
		if _, ok := p.Children[name]; !ok {
			return fmt.Errorf("priorities[%d]: %q given, which is not in children", i, name)
		}
		first[name] = i
	}
	return nil
}

func (c *PriorityChild) check(path string) error { return c.Config.required(join(path, "config")) }
