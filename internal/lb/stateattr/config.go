package stateattr

import (
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"
)

type configKey struct{}

// SetConfig returns state with the configuration of the channel's priority policy. The service
// config then configures that policy without children. Don't modify the configuration afterwards.
func SetConfig(state resolver.State, config serviceconfig.LoadBalancingConfig) resolver.State {
	state.Attributes = state.Attributes.WithValue(configKey{}, config)
	return state
}

// TakeConfig returns what SetConfig has set, or nil. It also returns state without it, because it's
// not meant for the policies below.
func TakeConfig(state resolver.State) (serviceconfig.LoadBalancingConfig, resolver.State) {
	config, _ := state.Attributes.Value(configKey{}).(serviceconfig.LoadBalancingConfig)
	if config != nil {
		state.Attributes = state.Attributes.WithValue(configKey{}, nil)
	}
	return config, state
}
