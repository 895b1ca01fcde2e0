package stateattr

import (
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"
)

type configKey struct{}

// SetConfig returns state with the configuration of a channel's priority policy. The service config
// of the state configures this policy without children. The configuration must not be modified.
func SetConfig(state resolver.State, config serviceconfig.LoadBalancingConfig) resolver.State {
	state.Attributes = state.Attributes.WithValue(configKey{}, config)
	return state
}

// TakeConfig returns the configuration that SetConfig has set, or nil, and state without it. It is
// not for the policies below.
func TakeConfig(state resolver.State) (serviceconfig.LoadBalancingConfig, resolver.State) {
	config, _ := state.Attributes.Value(configKey{}).(serviceconfig.LoadBalancingConfig)
	if config != nil {
		state.Attributes = state.Attributes.WithValue(configKey{}, nil)
	}
	return config, state
}
