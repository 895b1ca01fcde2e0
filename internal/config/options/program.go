// Package options defines the options of channels and how they are set by a program or by the
// parameters of a target.
package options

import (
	"log/slog"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/resolver"
)

type Program struct {
	Settings
	// Refresh is the interval between DNS lookups. It's 0 for the source's default, and negative if
	// there are no periodic lookups.
	Refresh       time.Duration
	RemoveAfter   int
	Authority     string
	ServiceConfig string
	Logger        *slog.Logger
	// InUse is a *stateattr.InUseReporter, or nil.
	InUse any
	// Sources are options of individual sources, all of type discovery.SourceOption.
	Sources []any
	// Err is set if the options are invalid. It then becomes the error of every call.
	Err error
	// Registered identifies the registration that the scheme's parser comes from. It's nil if the
	// parser isn't registered.
	Registered any
}

type Builder interface {
	resolver.Builder
	resolver.AuthorityOverrider
	// Check validates the options and a target without going to the network. If read is set, it
	// reads and checks any files that the target names.
	Check(target resolver.Target, read bool) error
}

// Make returns a builder for the targets of a scheme. parse is a discovery.Parser. Package join
// sets this variable, because we can't import it from here.
var Make func(scheme string, parse any, given Program) Builder

// NewReader returns a reader of targets. It's set by package discovery.
var NewReader func(scheme string, parse any, given Program) any

var parsers sync.Map // scheme to *registered

type registered struct{ parse any }

// Register registers the parser for a scheme, replacing any earlier one.
func Register(scheme string, parse any) { parsers.Store(scheme, &registered{parse}) }

// BuilderFor returns a builder for scheme, or nil if the scheme isn't registered.
func BuilderFor(scheme string, given Program) Builder {
	found, ok := parsers.Load(scheme)
	if !ok {
		return nil
	}
	given.Registered = found
	return Make(scheme, found.(*registered).parse, given)
}

func Builders(given Program) []Builder {
	var all []Builder
	for _, scheme := range Schemes() {
		all = append(all, BuilderFor(scheme, given))
	}
	return all
}

// Schemes returns the registered schemes in alphabetical order.
func Schemes() []string {
	var all []string
	parsers.Range(func(scheme, _ any) bool {
		all = append(all, scheme.(string))
		return true
	})
	slices.Sort(all)
	return all
}
