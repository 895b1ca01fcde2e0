// Package stateattr defines attributes of resolver states and endpoints: the channel, the labels of
// metrics, the function for re-resolution, and whether pick_first uses gRPC's health listener.
//
// All functions are safe for concurrent use. None of them modifies its input.
package stateattr

import (
	"log/slog"

	"google.golang.org/grpc/resolver"
)

type channelKey struct{}

// Channel describes the channel of a resolver state, and names its priorities. It must not be
// modified.
type Channel struct {
	Target string
	// Names holds the title of each child of the priority policy, such as "us-east/a, us-east/b",
	// or "" if a child has only a number. Titles come from a source, so they may be long, contain
	// any characters, and be the same for several children.
	Names map[string]string
	// Services holds the cluster of a child's endpoints by the name of the child, if there is one.
	Services map[string]string
	// Failures holds the reason why a child has no endpoints by the name of the child, if its
	// source knows it.
	Failures map[string]string
	// Empty says why the priority policy has no children, and names the source. It is "" if there
	// are children.
	Empty string
	// Logger logs failovers in addition to gRPC's log. It may be nil.
	Logger *slog.Logger
	// InUse is notified of the priority in use. It may be nil.
	InUse *InUseChannel
	// ResetBackoff makes the first endpoint that connects while none is READY end the backoffs of
	// all others.
	ResetBackoff bool
	// Live is a *live.Channel, the channel's entry on the debug page, or nil.
	Live any
}

// SetChannel returns state with channel in its attributes.
func SetChannel(state resolver.State, channel *Channel) resolver.State {
	state.Attributes = state.Attributes.WithValue(channelKey{}, channel)
	return state
}

// BelowPriority returns state without the channel's fields about the children of the priority
// policy. Policies below it may have children with the same names.
func BelowPriority(state resolver.State) resolver.State {
	c := ChannelOf(state)
	if c.Names == nil && c.Services == nil && c.Failures == nil && c.Empty == "" {
		return state
	}
	return SetChannel(state, &Channel{Target: c.Target, Logger: c.Logger, Live: c.Live})
}

// WithoutChannel returns state without the channel. Each update has a new Channel, so that every
// update would look like a change to the policies of endpoints.
func WithoutChannel(state resolver.State) resolver.State {
	if c, ok := state.Attributes.Value(channelKey{}).(*Channel); ok && c != nil {
		state.Attributes = state.Attributes.WithValue(channelKey{}, (*Channel)(nil))
	}
	return state
}

// ChannelOf returns the channel that SetChannel has set, or an empty Channel. It works at any depth
// of the tree.
func ChannelOf(state resolver.State) *Channel {
	if c, ok := state.Attributes.Value(channelKey{}).(*Channel); ok && c != nil {
		return c
	}
	return &Channel{}
}
