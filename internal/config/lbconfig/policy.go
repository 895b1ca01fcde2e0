// Package lbconfig holds the configuration types of this module's policies. The policies parse
// them from JSON, and package topology makes the same values for a resolver's answer, which must not
// be modified. Package lbconfig also merges the user's service config with the load-balancing
// configuration of a resolver.
//
// Every type survives a JSON round trip: grpc-go's cds policy marshals parsed configurations and parses
// them again.
package lbconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/serviceconfig"
)

// Policy is a child policy with its configuration. In JSON, it is a list of policies in order of
// preference, `[{"name": {…}}]`. The first one that is registered is used (gRPC
// service_config.proto, LoadBalancingConfig).
type Policy struct {
	// Builder builds the policy. It is nil if no policy is configured, or if Named did not find it.
	Builder balancer.Builder
	// Config is the result of the builder's ParseConfig, or nil if the builder has no such method.
	Config serviceconfig.LoadBalancingConfig

	name string
	raw  json.RawMessage // JSON form of Config, as it was parsed
}

// Named returns the policy that is registered under name. If there is none, the result can only be
// marshaled.
func Named(name string, config serviceconfig.LoadBalancingConfig) Policy {
	return Policy{Builder: balancer.Get(name), Config: config, name: name}
}

// ParsePolicy returns the policy that is registered under name, with a configuration in JSON. The
// default is {}.
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

// MarshalJSON returns a list that contains only this policy.
func (p Policy) MarshalJSON() ([]byte, error) {
	var config any = p.Config
	switch _, marshals := config.(json.Marshaler); {
	case p.Name() == "":
		return []byte("[]"), nil
	case p.raw != nil && !marshals: // another project's type need not survive a round trip
		config = p.raw
	case p.Config == nil:
		config = struct{}{}
	}
	return json.Marshal([]map[string]any{{p.Name(): config}})
}

const wantList = `a list of policies, [{"name": {…}}]`

// UnmarshalJSON uses the first policy in the list that is registered. It returns an error if no
// policy is registered, if an entry does not name exactly one policy, or if the policy rejects its
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
