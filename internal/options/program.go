// Package options has the options of a channel: one table of them, what a program may give,
// and what a target's parameters may.
package options

import (
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/resolver"
)

// Program is what a program gives to a channel, beside what it gives to gRPC itself.
type Program struct {
	Settings
	// Refresh is the time between two look-ups: 0 is the source's own, less is none.
	Refresh time.Duration
	// RemoveAfter is how many answers must lack an address; 0 is the default.
	RemoveAfter int
	// Authority is the channel's, "" is the target's own.
	Authority string
	// ServiceConfig is JSON without load balancing, "" is none.
	ServiceConfig string
	// Logger takes failovers; nil is none.
	Logger *slog.Logger
	// InUse learns which priority is in use; it is an *inuse.Teller, or nil.
	InUse any
	// Sources are the options of single sources, of type discovery.SourceOption.
	Sources []any
	// Err is what is wrong with all of this; calls then fail.
	Err error
	// Registered stands for the parser that was registered for the scheme; nil for one that was not.
	Registered any
}

// Builder makes resolvers of one scheme.
type Builder interface {
	resolver.Builder
	resolver.AuthorityOverrider
	// Check says what is wrong with a target of the scheme, or with the options. It asks
	// nobody. It reads files where read is set.
	Check(target resolver.Target, read bool) error
}

// Make returns a builder for targets of the scheme, which parse reads: a discovery.Parser.
// Package resolving sets it: it has the builder, and is above this package.
var Make func(scheme string, parse any, given Program) Builder

// NewReader returns what reads targets of the scheme. Package discovery sets it.
var NewReader func(scheme string, parse any, given Program) any

// registry has the parsers of schemes.
var registry struct {
	mu      sync.Mutex
	parsers map[string]*registered
}

type registered struct{ parse any }

// Register makes the parser of a scheme known, in place of the one that was.
func Register(scheme string, parse any) {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	if registry.parsers == nil {
		registry.parsers = make(map[string]*registered)
	}
	registry.parsers[scheme] = &registered{parse}
}

// For returns a builder for a scheme, nil for one that is not registered.
func For(scheme string, given Program) Builder {
	registry.mu.Lock()
	found := registry.parsers[scheme]
	registry.mu.Unlock()
	if found == nil {
		return nil
	}
	given.Registered = found
	return Make(scheme, found.parse, given)
}

// Builders returns a builder for each scheme, in alphabetical order.
func Builders(given Program) []Builder {
	var all []Builder
	for _, scheme := range Schemes() {
		all = append(all, For(scheme, given))
	}
	return all
}

// Schemes returns all schemes, in alphabetical order.
func Schemes() []string {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	return slices.Sorted(maps.Keys(registry.parsers))
}
