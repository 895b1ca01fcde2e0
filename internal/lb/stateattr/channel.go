// Package stateattr defines attributes of resolver states and endpoints: the channel, metric
// labels, the function for re-resolution, and whether pick_first uses gRPC's health listener.
//
// All functions are safe for concurrent use. They do not modify their input.
package stateattr

import (
	"log/slog"
	"time"

	"google.golang.org/grpc/resolver"
)

type channelKey struct{}

// Channel describes the channel to which a resolver state belongs. It must not be modified.
type Channel struct {
	Target string
	// Names maps the children of the priority policy to their titles, such as "us-east/a, us-east/b".
	// A title may be "". Titles come from a source, so they may be long, contain any characters, and
	// not be unique.
	Names map[string]string
	// Services maps the children of the priority policy to the names of their clusters.
	Services map[string]string
	// Failures says why children of the priority policy have no endpoints, where the source knows
	// it.
	Failures map[string]string
	// Empty says why the priority policy has no children, with the name of the source. It is "" if
	// there are children.
	Empty string
	// Logger gets the log records about failovers, in addition to gRPC's log. It may be nil.
	Logger *slog.Logger
	// InUse is notified when the priority in use changes. It may be nil.
	InUse *InUseChannel
	// MaxBackoff is the longest backoff between attempts to connect, if the program chooses it, or 0.
	MaxBackoff time.Duration
	// Live is the *live.Channel for the debug page, or nil.
	Live any
}

// SetChannel returns state with channel in its attributes.
func SetChannel(state resolver.State, channel *Channel) resolver.State {
	state.Attributes = state.Attributes.WithValue(channelKey{}, channel)
	return state
}

// BelowPriority returns state without the channel's fields about children of the priority policy.
// The policies below may have children with the same names, so these fields are not for them.
func BelowPriority(state resolver.State) resolver.State {
	c := ChannelOf(state)
	if c.Names == nil && c.Services == nil && c.Failures == nil && c.Empty == "" {
		return state
	}
	return SetChannel(state, &Channel{Target: c.Target, Logger: c.Logger, Live: c.Live})
}

// WithoutChannel returns state without the channel. It is for the policies of endpoints: each
// update has a new Channel, which they would take for a change.
func WithoutChannel(state resolver.State) resolver.State {
	if c, ok := state.Attributes.Value(channelKey{}).(*Channel); ok && c != nil {
		state.Attributes = state.Attributes.WithValue(channelKey{}, (*Channel)(nil))
	}
	return state
}

// ChannelOf returns the channel that SetChannel has set, or an empty Channel.
func ChannelOf(state resolver.State) *Channel {
	if c, ok := state.Attributes.Value(channelKey{}).(*Channel); ok && c != nil {
		return c
	}
	return &Channel{}
}
