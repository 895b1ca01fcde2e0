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
	WarmStandby           uint32                   `json:"warmStandby,omitempty"`
	FastFailover          bool                     `json:"fastFailover,omitempty"`
	FailbackJitter        Duration                 `json:"failbackJitter,omitempty"`
	MaxFailbackDelay      Duration                 `json:"maxFailbackDelay,omitempty"`
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
	if err := p.CheckChoice(); err != nil {
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
			return fmt.Errorf("priorities[%d]: %q given again, is priorities[%d] already", i, name, j)
		}
		if _, ok := p.Children[name]; !ok {
			return fmt.Errorf("priorities[%d]: %q given, which is not in children", i, name)
		}
		first[name] = i
	}
	return nil
}

// The largest values that make sense.
const (
	MostStandbys    = 128
	LongestFailback = 24 * time.Hour
)

// CheckChoice says what is wrong with the fields that a program or a target may set, too:
// the same wherever they come from.
func (p *Priority) CheckChoice() error {
	if !(p.MinReady >= 0 && p.MinReady <= 1) {
		return fmt.Errorf("minReady: %v given, want a number from 0 to 1", p.MinReady)
	}
	if p.MinReadyRecovery != 0 && !(p.MinReadyRecovery >= p.MinReady && p.MinReadyRecovery <= 1) {
		return fmt.Errorf("minReadyRecovery: %v given, want a number from minReady, %v, to 1", p.MinReadyRecovery, p.MinReady)
	}
	if p.WarmStandby > MostStandbys {
		return fmt.Errorf("warmStandby: %d given, want 0 to %d", p.WarmStandby, MostStandbys)
	}
	for _, given := range []struct {
		name string
		d    Duration
	}{{"failbackDelay", p.FailbackDelay}, {"failbackJitter", p.FailbackJitter}, {"maxFailbackDelay", p.MaxFailbackDelay}} {
		if d := time.Duration(given.d); d < 0 || d > LongestFailback {
			return fmt.Errorf("%s: %v given, want a duration such as 10s, from 0s to %v", given.name, d, LongestFailback)
		}
	}
	if p.MaxFailbackDelay != 0 && p.MaxFailbackDelay < p.FailbackDelay {
		return fmt.Errorf("maxFailbackDelay: %v given, want 0s, or failbackDelay, %v, and more", time.Duration(p.MaxFailbackDelay), time.Duration(p.FailbackDelay))
	}
	return nil
}

func (c *PriorityChild) check(path string) error { return c.Config.required(join(path, "config")) }
