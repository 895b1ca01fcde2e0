// Package stateattr defines attributes of resolver states and endpoints. There are some for the
// channel, for metric labels, for the function that handles re-resolution, and for pick_first's use
// of gRPC's health listener.
//
// All functions are safe for concurrent use and don't modify their input.
package stateattr

import (
	"log/slog"
	"time"

	"google.golang.org/grpc/resolver"
)

type channelKey struct{}

// Channel describes the channel that a resolver state belongs to. Don't modify it.
type Channel struct {
	Target string
	// Names maps the children of the priority policy to their titles, e.g. "us-east/a, us-east/b".
	// Titles come from a source, so they can be empty, long, contain any characters, and occur more
	// than once.
	Names    map[string]string
	Services map[string]string
	// Failures says why children of the priority policy have no endpoints, as far as the source
	// knows.
	Failures map[string]string
	// Empty says why the priority policy has no children, and names the source. It's "" if there
	// are children.
	Empty string
	// Logger gets a copy of what we log about failovers, which always goes to gRPC's log. It may be
	// nil.
	Logger *slog.Logger
	// InUse is called when the priority in use changes. It may be nil.
	InUse *InUseChannel
	// MaxBackoff is the longest backoff between connection attempts if the program has set that,
	// otherwise 0.
	MaxBackoff time.Duration
	Live       any
}

func SetChannel(state resolver.State, channel *Channel) resolver.State {
	state.Attributes = state.Attributes.WithValue(channelKey{}, channel)
	return state
}

// BelowPriority removes the fields of the channel that are about children of the priority policy.
// The policies below may have children with the same names, and those fields aren't about them.
func BelowPriority(state resolver.State) resolver.State {
	c := ChannelOf(state)
	if c.Names == nil && c.Services == nil && c.Failures == nil && c.Empty == "" {
		return state
	}
	return SetChannel(state, &Channel{Target: c.Target, Logger: c.Logger, Live: c.Live})
}

// WithoutChannel returns state without the channel. Every update has a new Channel, which would
// look like a change to the policies of endpoints, so we strip it for them.
func WithoutChannel(state resolver.State) resolver.State {
	if c, ok := state.Attributes.Value(channelKey{}).(*Channel); ok && c != nil {
		state.Attributes = state.Attributes.WithValue(channelKey{}, (*Channel)(nil))
	}
	return state
}

func ChannelOf(state resolver.State) *Channel {
	if c, ok := state.Attributes.Value(channelKey{}).(*Channel); ok && c != nil {
		return c
	}
	return &Channel{}
}
