// Package options defines the options of channels, and how a program and the parameters of a target
// set them.
package options

import (
	"log/slog"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/resolver"
)

// Program holds the options that a program sets for a channel.
type Program struct {
	Settings
	// Refresh is the interval between DNS lookups. 0 means the source's default, and a negative
	// value disables periodic lookups.
	Refresh time.Duration
	// RemoveAfter is how many consecutive answers must lack an address before the address is removed.
	// 0 means the default.
	RemoveAfter int
	// Authority is the authority of the channel, or "" for the target's default.
	Authority     string
	ServiceConfig string
	Logger        *slog.Logger
	// InUse is a *stateattr.InUseReporter, or nil.
	InUse any
	// Sources are the options of individual sources, of type discovery.SourceOption.
	Sources []any
	// Err is set if the options are invalid. All calls then fail with it.
	Err error
	// Registered identifies the registration of the scheme's parser. It is nil for a parser that is
	// not registered.
	Registered any
}

// Builder is the interface of this project's resolver builders.
type Builder interface {
	resolver.Builder
	resolver.AuthorityOverrider
	// Check validates the options and a target without the network. If read is set, it also checks
	// the files that the target names.
	Check(target resolver.Target, read bool) error
}

// Make returns a builder for targets of scheme. parse is a discovery.Parser. Package join sets
// Make, as we must not import it here.
var Make func(scheme string, parse any, given Program) Builder

// NewReader returns a reader of targets. Package discovery sets NewReader.
var NewReader func(scheme string, parse any, given Program) any

// parsers maps schemes to their *registered.
var parsers sync.Map

type registered struct{ parse any }

// Register registers the parser for scheme. It replaces an earlier parser.
func Register(scheme string, parse any) { parsers.Store(scheme, &registered{parse}) }

// BuilderFor returns a builder for scheme, or nil if the scheme is not registered.
func BuilderFor(scheme string, given Program) Builder {
	found, ok := parsers.Load(scheme)
	if !ok {
		return nil
	}
	given.Registered = found
	return Make(scheme, found.(*registered).parse, given)
}

// Builders returns a builder for each registered scheme, in alphabetical order.
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
