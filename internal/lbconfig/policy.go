// Package lbconfig holds the pieces that the configurations of several policies
// share: a child policy with its own configuration, and a duration.
//
// Every type survives a JSON round trip, because grpc-go's cds policy marshals
// parsed configurations and parses them again.
package lbconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/serviceconfig"
)

// Policy is a child policy and its parsed configuration. In JSON it is a list of
// policies in order of preference, `[{"name": {…}}]`, of which the first that is
// registered is taken (gRPC service_config.proto, LoadBalancingConfig).
type Policy struct {
	// Builder builds the policy. It is nil in the zero Policy, "none given".
	Builder balancer.Builder
	// Config is what the builder's ParseConfig returned, nil where it has none.
	Config serviceconfig.LoadBalancingConfig

	raw json.RawMessage
}

// Name returns the name of the policy, and "" for the zero Policy.
func (p Policy) Name() string {
	if p.Builder == nil {
		return ""
	}
	return p.Builder.Name()
}

// MarshalJSON returns the list with the one policy that was taken.
func (p Policy) MarshalJSON() ([]byte, error) {
	if p.Builder == nil {
		return []byte("[]"), nil
	}
	raw := p.raw
	if raw == nil {
		raw = json.RawMessage("{}")
	}
	return json.Marshal([]map[string]json.RawMessage{{p.Builder.Name(): raw}})
}

// UnmarshalJSON takes the first policy of the list that is registered. It is an
// error if there is none, if an entry does not hold exactly one policy, or if the
// policy rejects its configuration.
func (p *Policy) UnmarshalJSON(data []byte) error {
	var entries []map[string]json.RawMessage
	if err := json.Unmarshal(data, &entries); err != nil {
		return fmt.Errorf(`want a list of policies, [{"name": {…}}]: %w`, err)
	}
	var unknown []string
	for i, entry := range entries {
		if len(entry) != 1 {
			return fmt.Errorf("entry %d names %d policies, want exactly one", i, len(entry))
		}
		for name, raw := range entry {
			builder := balancer.Get(name)
			if builder == nil {
				unknown = append(unknown, fmt.Sprintf("%q", name))
				continue
			}
			return p.parse(builder, raw)
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
	if err != nil {
		return fmt.Errorf("%s: %w", builder.Name(), err)
	}
	p.Config = config
	return nil
}
