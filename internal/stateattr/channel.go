// Package stateattr has what the attributes of a resolver state carry down the tree of
// policies besides endpoints: which channel it is for, where in the tree a policy is,
// whom to ask for re-resolution, and whether leaves listen to the health of servers.
//
// All functions are safe for concurrent use: none of them modifies its input.
package stateattr

import (
	"log/slog"

	"google.golang.org/grpc/resolver"
)

// channelKey is the key of the channel in a resolver state's attributes.
type channelKey struct{}

// Channel says which channel a state is for, and what people call the priorities in it,
// for logs, pages and errors. It must not be modified.
type Channel struct {
	// Target is the channel's, as its user wrote it.
	Target string
	// Names has a name for each child of the priority policy, such as
	// "us-east/a, us-east/b" or a part of a failover target; "" where there is nothing
	// to say but its number. They need not differ, and hold what a source said: any
	// characters, as many as it liked.
	Names map[string]string
	// Services has the cluster that a child's endpoints are of, by the child's name, where
	// there is one.
	Services map[string]string
	// Failures says why a child has no endpoints, by the child's name, where its source
	// knows.
	Failures map[string]string
	// Empty says why the priority policy has no children, and which source says so; ""
	// where it has some.
	Empty string
	// Logger takes failovers, in addition to gRPC's log; nil for none.
	Logger *slog.Logger
	// InUse learns which priority is in use; it may be nil.
	InUse *InUseChannel
	// ResetBackoff says that where nothing is READY, the first endpoint that connects ends
	// the backoffs of the others.
	ResetBackoff bool
	// Live is where the channel is known to package debug, nil for nowhere.
	Live any
}

// SetChannel returns state with channel in its attributes.
func SetChannel(state resolver.State, channel *Channel) resolver.State {
	state.Attributes = state.Attributes.WithValue(channelKey{}, channel)
	return state
}

// BelowPriority returns state without what its channel says of the children of the priority
// policy: a policy further below may have children of the same names.
func BelowPriority(state resolver.State) resolver.State {
	c := ChannelOf(state)
	if c.Names == nil && c.Services == nil && c.Failures == nil && c.Empty == "" {
		return state
	}
	return SetChannel(state, &Channel{Target: c.Target, Logger: c.Logger, Live: c.Live})
}

// WithoutChannel returns state without what SetChannel put into it: each update has
// another, of which an endpoint's policy need not hear.
func WithoutChannel(state resolver.State) resolver.State {
	if c, ok := state.Attributes.Value(channelKey{}).(*Channel); ok && c != nil {
		state.Attributes = state.Attributes.WithValue(channelKey{}, (*Channel)(nil))
	}
	return state
}

// ChannelOf returns the channel that SetChannel put into state, at any depth of the
// tree, or an empty Channel.
func ChannelOf(state resolver.State) *Channel {
	if c, ok := state.Attributes.Value(channelKey{}).(*Channel); ok && c != nil {
		return c
	}
	return &Channel{}
}
