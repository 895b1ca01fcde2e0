package priority

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc/serviceconfig"

	core "github.com/understudy-lb/understudy/internal/core/priority"
	"github.com/understudy-lb/understudy/internal/lbconfig"
)

// config is the parsed configuration. It survives a JSON round trip.
type config struct {
	serviceconfig.LoadBalancingConfig `json:"-"`

	Children              map[string]childConfig `json:"children"`
	Priorities            []string               `json:"priorities"`
	FailoverTimeout       lbconfig.Duration      `json:"failoverTimeout"`
	ChildRetention        lbconfig.Duration      `json:"childRetention"`
	RemovedChildRetention lbconfig.Duration      `json:"removedChildRetention"`
	FailbackDelay         lbconfig.Duration      `json:"failbackDelay"`
}

type childConfig struct {
	Config                     lbconfig.Policy `json:"config"`
	IgnoreReresolutionRequests bool            `json:"ignoreReresolutionRequests"`
}

// parseConfig parses and checks a configuration.
func parseConfig(raw json.RawMessage) (*config, error) {
	c := &config{
		FailoverTimeout:       lbconfig.Duration(10 * time.Second),
		ChildRetention:        lbconfig.Duration(15 * time.Minute),
		RemovedChildRetention: lbconfig.Duration(15 * time.Minute),
	}
	var children map[string]json.RawMessage
	err := parseFields(raw, map[string]any{
		"children":              &children,
		"priorities":            &c.Priorities,
		"failoverTimeout":       &c.FailoverTimeout,
		"childRetention":        &c.ChildRetention,
		"removedChildRetention": &c.RemovedChildRetention,
		"failbackDelay":         &c.FailbackDelay,
	})
	if err != nil {
		return nil, fmt.Errorf("priority: %w", err)
	}
	if c.FailoverTimeout == 0 {
		return nil, errors.New(`priority: failoverTimeout: 0s given, want a positive duration such as "10s"`)
	}
	if c.Children, err = parseChildren(children); err != nil {
		return nil, fmt.Errorf("priority: %w", err)
	}
	if err := c.checkPriorities(); err != nil {
		return nil, fmt.Errorf("priority: %w", err)
	}
	return c, nil
}

func parseChildren(raw map[string]json.RawMessage) (map[string]childConfig, error) {
	children := make(map[string]childConfig, len(raw))
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		if name == "" {
			return nil, errors.New("children: a child has an empty name")
		}
		var c childConfig
		err := parseFields(raw[name], map[string]any{
			"config":                     &c.Config,
			"ignoreReresolutionRequests": &c.IgnoreReresolutionRequests,
		})
		if err == nil && c.Config.Builder == nil {
			err = errors.New(`config: none given, want a list of policies, [{"name": {…}}]`)
		}
		if err != nil {
			return nil, fmt.Errorf("children[%q]: %w", name, err)
		}
		children[name] = c
	}
	return children, nil
}

func (c *config) checkPriorities() error {
	first := make(map[string]int, len(c.Priorities))
	for i, name := range c.Priorities {
		if name == "" {
			return fmt.Errorf("priorities[%d]: an empty name given, want one of children", i)
		}
		if j, ok := first[name]; ok {
			return fmt.Errorf("priorities[%d]: %q given again, is priorities[%d] already", i, name, j)
		}
		if _, ok := c.Children[name]; !ok {
			return fmt.Errorf("priorities[%d]: %q given, which is not in children", i, name)
		}
		first[name] = i
	}
	return nil
}

// core returns the part that the core needs to know.
func (c *config) core() core.Config {
	return core.Config{
		Children:              slices.Collect(maps.Keys(c.Children)),
		Priorities:            c.Priorities,
		FailoverTimeout:       time.Duration(c.FailoverTimeout),
		ChildRetention:        time.Duration(c.ChildRetention),
		RemovedChildRetention: time.Duration(c.RemovedChildRetention),
		FailbackDelay:         time.Duration(c.FailbackDelay),
	}
}

// parseFields decodes the fields of a JSON object into what targets points to by
// their names; those that are absent or null are left alone. Its error names the
// field.
func parseFields(raw json.RawMessage, targets map[string]any) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil || fields == nil {
		return errors.New("want a JSON object")
	}
	for _, name := range slices.Sorted(maps.Keys(targets)) {
		value, ok := fields[name]
		if !ok || string(value) == "null" {
			continue
		}
		err := json.Unmarshal(value, targets[name])
		var wrongType *json.UnmarshalTypeError
		if errors.As(err, &wrongType) {
			return fmt.Errorf("%s: a JSON %s given, want %s", name, wrongType.Value, kinds[name])
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// kinds says what those fields hold whose type encoding/json checks.
var kinds = map[string]string{
	"children":                   `an object, {"name": {"config": […]}}`,
	"priorities":                 "a list of names",
	"config":                     `a list of policies, [{"name": {…}}]`,
	"ignoreReresolutionRequests": "true or false",
}
