package lbconfig

import (
	"fmt"
	"math"

	"google.golang.org/grpc/serviceconfig"
)

// StartPoint is where a new child starts in the interval between its picks.
type StartPoint string

// The values of StartPoint.
const (
	StartSpec   StartPoint = "spec"   // at the beginning of the interval, as in gRFC A34
	StartRandom StartPoint = "random" // at a random point of the interval
)

func (s *StartPoint) check(path string) error {
	if *s != StartSpec && *s != StartRandom {
		return withPath(path, fmt.Errorf("%q given, want %q or %q", *s, StartSpec, StartRandom))
	}
	return nil
}

// WeightedTarget configures understudy_weighted_target (gRFC A28).
type WeightedTarget struct {
	serviceconfig.LoadBalancingConfig `json:"-"`

	Targets               map[string]Target `json:"targets"`
	RemovedChildRetention Duration          `json:"removedChildRetention"`
	StartPoint            StartPoint        `json:"startPoint"`
}

// Target is one child of understudy_weighted_target.
type Target struct {
	Weight      uint32 `json:"weight"`
	ChildPolicy Policy `json:"childPolicy"`
}

func (w *WeightedTarget) setDefaults() { *w = WeightedTarget{StartPoint: StartSpec} }

func (w *WeightedTarget) check(string) error {
	sum := uint64(0)
	for _, t := range w.Targets {
		sum += uint64(t.Weight)
	}
	if sum > math.MaxUint32 {
		return fmt.Errorf("targets: the weights sum to %d, want at most %d", sum, uint32(math.MaxUint32))
	}
	return nil
}

func (t *Target) check(path string) error {
	if t.Weight == 0 {
		return withPath(join(path, "weight"), fmt.Errorf("0 or none given, want 1 to %d", uint32(math.MaxUint32)))
	}
	return t.ChildPolicy.required(join(path, "childPolicy"))
}

// WeightedRoundRobin configures understudy_weighted_round_robin (gRFC A34).
type WeightedRoundRobin struct {
	serviceconfig.LoadBalancingConfig `json:"-"`

	StartPoint StartPoint `json:"startPoint"`
	SlowStart  *SlowStart `json:"slowStart,omitempty"`
}

// SlowStart gradually increases the share of an endpoint that has become READY.
type SlowStart struct {
	Window           Duration `json:"window"`
	Aggression       float64  `json:"aggression"`
	MinWeightPercent float64  `json:"minWeightPercent"`
}

// NewWeightedRoundRobin returns the defaults.
func NewWeightedRoundRobin() *WeightedRoundRobin {
	w := &WeightedRoundRobin{}
	w.setDefaults()
	return w
}

func (w *WeightedRoundRobin) setDefaults() { *w = WeightedRoundRobin{StartPoint: StartSpec} }

// NewSlowStart returns the defaults. Window has no default.
func NewSlowStart() *SlowStart {
	s := &SlowStart{}
	s.setDefaults()
	return s
}

func (s *SlowStart) setDefaults() { *s = SlowStart{Aggression: 1, MinWeightPercent: 10} }

func (s *SlowStart) check(path string) error {
	switch {
	case s.Window == 0:
		return withPath(join(path, "window"), fmt.Errorf(`"0s" or none given, want a positive duration such as "30s"`))
	case !(s.Aggression > 0):
		return withPath(join(path, "aggression"), fmt.Errorf("%v given, want a number above 0", s.Aggression))
	case !(s.MinWeightPercent >= 0 && s.MinWeightPercent <= 100):
		return withPath(join(path, "minWeightPercent"), fmt.Errorf("%v given, want a number from 0 to 100", s.MinWeightPercent))
	}
	return nil
}
