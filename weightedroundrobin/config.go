package weightedroundrobin

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"google.golang.org/grpc/serviceconfig"

	"github.com/understudy-lb/understudy/internal/lbconfig"
)

// config is the parsed configuration. It survives a JSON round trip.
type config struct {
	serviceconfig.LoadBalancingConfig `json:"-"`

	StartPoint startPoint `json:"startPoint"`
	SlowStart  *slowStart `json:"slowStart,omitempty"`
}

// startPoint is where in its interval a new endpoint starts.
type startPoint string

const (
	startSpec   startPoint = "spec"
	startRandom startPoint = "random"
)

// slowStart configures the growing share of an endpoint that has become READY.
type slowStart struct {
	Window           lbconfig.Duration `json:"window"`
	Aggression       float64           `json:"aggression"`
	MinWeightPercent float64           `json:"minWeightPercent"`
}

func defaultConfig() *config { return &config{StartPoint: startSpec} }

// parseConfig parses and checks a configuration. Unknown fields are ignored.
func parseConfig(raw json.RawMessage) (*config, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, fmt.Errorf("weighted_round_robin: want a JSON object: %w", err)
	}
	c := defaultConfig()
	if err := parseField(fields, "startPoint", &c.StartPoint); err != nil {
		return nil, fmt.Errorf("weighted_round_robin: %w", err)
	}
	if c.StartPoint != startSpec && c.StartPoint != startRandom {
		return nil, fmt.Errorf("weighted_round_robin: startPoint: %q given, want %q or %q", c.StartPoint, startSpec, startRandom)
	}
	if err := parseField(fields, "slowStart", &c.SlowStart); err != nil {
		return nil, fmt.Errorf("weighted_round_robin: %w", err)
	}
	return c, nil
}

// UnmarshalJSON parses and checks, with errors that name the field.
func (s *slowStart) UnmarshalJSON(data []byte) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return errors.New("want a JSON object")
	}
	*s = slowStart{Aggression: 1, MinWeightPercent: 10}
	if err := errors.Join(
		parseField(fields, "window", &s.Window),
		parseField(fields, "aggression", &s.Aggression),
		parseField(fields, "minWeightPercent", &s.MinWeightPercent),
	); err != nil {
		return err
	}
	switch {
	case s.Window <= 0:
		return fmt.Errorf(`window: %v given, want a positive duration such as "30s"`, time.Duration(s.Window))
	case !(s.Aggression > 0) || math.IsInf(s.Aggression, 0):
		return fmt.Errorf("aggression: %v given, want a number above 0", s.Aggression)
	case !(s.MinWeightPercent >= 0 && s.MinWeightPercent <= 100):
		return fmt.Errorf("minWeightPercent: %v given, want a number from 0 to 100", s.MinWeightPercent)
	}
	return nil
}

// parseField decodes the field of the name into v, and leaves v alone where there
// is none. Its error names the field.
func parseField(fields map[string]json.RawMessage, name string, v any) error {
	raw, ok := fields[name]
	if !ok || string(raw) == "null" {
		return nil
	}
	err := json.Unmarshal(raw, v)
	var wrongType *json.UnmarshalTypeError
	if errors.As(err, &wrongType) {
		return fmt.Errorf("%s: %s given, want a %s", name, raw, wrongType.Type.Kind())
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
