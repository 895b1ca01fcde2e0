package lbconfig

import (
	"fmt"
	"math"

	"google.golang.org/grpc/serviceconfig"
)

// StartPoint is where a new child starts in the interval between its picks.
type StartPoint string

const (
	StartSpec   StartPoint = "spec"   // at the beginning, as in gRFC A34
	StartRandom StartPoint = "random" // at a random point
)

func (s *StartPoint) check() error {
	if *s != StartSpec && *s != StartRandom {
		return fmt.Errorf("%q given, want %q or %q", *s, StartSpec, StartRandom)
	}
	return nil
}

// WeightedTarget configures understudy_weighted_target (gRFC A28).
type WeightedTarget struct {
	serviceconfig.LoadBalancingConfig `json:"-"`

	Targets               map[string]Target `json:"targets"`
	RemovedChildRetention Duration          `json:"removedChildRetention"`
	StartPoint            StartPoint        `json:"startPoint" default:"spec"`
}

type Target struct {
	Weight      uint32 `json:"weight" want:"1 to 4294967295"`
	ChildPolicy Policy `json:"childPolicy"`
}

func (w *WeightedTarget) check() error {
	sum := uint64(0)
	for _, t := range w.Targets {
		sum += uint64(t.Weight)
	}
	if sum > math.MaxUint32 {
		return fmt.Errorf("targets: the weights sum to %d, want at most %d", sum, uint32(math.MaxUint32))
	}
	return nil
}

// WeightedRoundRobin configures understudy_weighted_round_robin (gRFC A34).
type WeightedRoundRobin struct {
	serviceconfig.LoadBalancingConfig `json:"-"`

	StartPoint StartPoint `json:"startPoint" default:"spec"`
	SlowStart  *SlowStart `json:"slowStart,omitempty"`
}

// SlowStart gradually increases an endpoint's share of the calls after it becomes READY.
type SlowStart struct {
	Window           Duration `json:"window" want:"a positive duration such as \"30s\""`
	Aggression       float64  `json:"aggression" default:"1" want:"a number above 0"`
	MinWeightPercent float64  `json:"minWeightPercent" default:"10" max:"100" want:"a number from 0 to 100"`
}
