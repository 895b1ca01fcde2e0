// Package lbconfig has the configuration types of this module's policies. Policies parse them from
// JSON, whereas package topology builds the same values directly from a resolver's answer. In that
// case they must not be modified. We also merge the user's service config with a resolver's
// load-balancing configuration here.
//
// All types survive a JSON round trip because grpc-go's cds policy marshals configurations after
// parsing them, and then parses them again.
package lbconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/serviceconfig"
)

// Policy is a child policy with its configuration. In JSON, it's a list of policies, `[{"name":
// {…}}]`, and we use the first one that's registered (gRPC service_config.proto,
// LoadBalancingConfig).
type Policy struct {
	// Builder is nil if no policy is configured, or if Named didn't find it.
	Builder balancer.Builder
	// Config comes from the builder's ParseConfig. If the builder doesn't have that method, it's
	// nil.
	Config serviceconfig.LoadBalancingConfig

	name string
	raw  json.RawMessage // what Config was parsed from
}

// Named returns the policy registered under name. If there isn't one, you can still marshal the
// result, but not use it.
func Named(name string, config serviceconfig.LoadBalancingConfig) Policy {
	return Policy{Builder: balancer.Get(name), Config: config, name: name}
}

// ParsePolicy returns the policy registered under name. Its configuration is in JSON and defaults
// to {}.
func ParsePolicy(name string, config json.RawMessage) (p Policy, err error) {
	if config == nil {
		config = json.RawMessage("{}")
	}
	err = p.UnmarshalJSON(fmt.Appendf(nil, "[{%q: %s}]", name, config))
	return p, err
}

// Name returns the name of the policy, or "" for the zero Policy.
func (p Policy) Name() string {
	if p.Builder == nil {
		return p.name
	}
	return p.Builder.Name()
}

// MarshalJSON returns a list with just this policy.
func (p Policy) MarshalJSON() ([]byte, error) {
	var config any = p.Config
	switch _, marshals := config.(json.Marshaler); {
	case p.Name() == "":
		return []byte("[]"), nil
	case p.raw != nil && !marshals: // we can't rely on other projects' types to survive a round trip
		config = p.raw
	case p.Config == nil:
		config = struct{}{}
	}
	return json.Marshal([]map[string]any{{p.Name(): config}})
}

const wantList = `a list of policies, [{"name": {…}}]`

// UnmarshalJSON uses the first registered policy in the list. It fails if none of them is
// registered, if an entry doesn't name exactly one policy, or if the policy rejects its
// configuration.
func (p *Policy) UnmarshalJSON(data []byte) error {
	var entries []map[string]json.RawMessage
	if err := json.Unmarshal(data, &entries); err != nil {
		return wantError(data, "", wantList)
	}
	var unknown []string
	for i, entry := range entries {
		if len(entry) != 1 {
			return fmt.Errorf("entry %d names %d policies, want exactly one", i, len(entry))
		}
		for name, raw := range entry {
			if builder := balancer.Get(name); builder != nil {
				return p.parse(builder, raw)
			}
			unknown = append(unknown, fmt.Sprintf("%q", name))
		}
	}
	if len(unknown) == 0 {
		return errors.New("names no policy, want at least one")
	}
	return fmt.Errorf("none of the policies is registered: %s", strings.Join(unknown, ", "))
}

func (p *Policy) parse(builder balancer.Builder, raw json.RawMessage) error {
	*p = Policy{Builder: builder, raw: raw}
	parser, ok := builder.(balancer.ConfigParser)
	if !ok {
		return nil
	}
	config, err := parser.ParseConfig(raw)
	if inner := (*Error)(nil); err != nil && !errors.As(err, &inner) {
		return fmt.Errorf("%s: %w", builder.Name(), err)
	}
	p.Config = config
	return err
}
