package weightedtarget

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"google.golang.org/grpc/serviceconfig"

	"github.com/understudy-lb/understudy/internal/lbconfig"
)

// config is the parsed configuration. It survives a JSON round trip.
type config struct {
	serviceconfig.LoadBalancingConfig `json:"-"`

	Targets               map[string]target `json:"targets"`
	RemovedChildRetention lbconfig.Duration `json:"removedChildRetention"`
	StartPoint            startPoint        `json:"startPoint"`
}

// target is one child.
type target struct {
	Weight      uint32          `json:"weight"`
	ChildPolicy lbconfig.Policy `json:"childPolicy"`
}

// startPoint is where in its interval a new child starts.
type startPoint string

const (
	startSpec   startPoint = "spec"
	startRandom startPoint = "random"
)

// parseConfig parses and checks a configuration. Unknown fields are ignored. Errors
// name the field.
func parseConfig(raw json.RawMessage) (*config, error) {
	var fields struct {
		Targets               map[string]json.RawMessage `json:"targets"`
		RemovedChildRetention lbconfig.Duration          `json:"removedChildRetention"`
		StartPoint            startPoint                 `json:"startPoint"`
	}
	fields.StartPoint = startSpec
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, fmt.Errorf("weighted_target: %w", describe(err))
	}
	c := &config{
		Targets:               make(map[string]target, len(fields.Targets)),
		RemovedChildRetention: fields.RemovedChildRetention,
		StartPoint:            fields.StartPoint,
	}
	if c.StartPoint != startSpec && c.StartPoint != startRandom {
		return nil, fmt.Errorf("weighted_target: startPoint: %q given, want %q or %q", c.StartPoint, startSpec, startRandom)
	}
	sum := uint64(0)
	for _, name := range slices.Sorted(maps.Keys(fields.Targets)) {
		t, err := parseTarget(fields.Targets[name])
		if err != nil {
			return nil, fmt.Errorf("weighted_target: targets[%q]: %w", name, err)
		}
		c.Targets[name] = t
		sum += uint64(t.Weight)
	}
	if sum > math.MaxUint32 {
		return nil, fmt.Errorf("weighted_target: the weights of targets sum to %d, want at most %d", sum, uint32(math.MaxUint32))
	}
	return c, nil
}

func parseTarget(raw json.RawMessage) (target, error) {
	var t target
	if err := json.Unmarshal(raw, &t); err != nil {
		return target{}, describe(err)
	}
	if t.Weight == 0 {
		return target{}, fmt.Errorf("weight: 0 or none given, want 1 to %d", uint32(math.MaxUint32))
	}
	if t.ChildPolicy.Builder == nil {
		return target{}, errors.New("childPolicy: none given, want a list of policies")
	}
	return t, nil
}

// describe names the field of a value of the wrong type.
func describe(err error) error {
	var wrongType *json.UnmarshalTypeError
	if errors.As(err, &wrongType) && wrongType.Field != "" {
		return fmt.Errorf("%s: %s given, want a %s", wrongType.Field, wrongType.Value, wrongType.Type.Kind())
	}
	return err
}
