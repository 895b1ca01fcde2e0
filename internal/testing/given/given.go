// Package given makes builders of sources with options. For tests only: programs have
// understudy.Options.
package given

import (
	"reflect"

	"google.golang.org/grpc"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/options"
	_ "github.com/understudy-lb/understudy/internal/resolving"
)

// Option changes what a program gives; nil changes nothing.
type Option func(*options.Program)

// Set sets a field of options.Program.
func Set(field string, value any) Option {
	return func(p *options.Program) {
		f := reflect.ValueOf(p).Elem().FieldByName(field)
		f.Set(reflect.ValueOf(value).Convert(f.Type()))
	}
}

// MinReady sets both parts.
func MinReady(minReady, recovery float64) Option {
	return func(p *options.Program) { p.MinReady, p.MinReadyRecovery = minReady, recovery }
}

// Sources adds options of sources, each a discovery.SourceOption.
func Sources(all ...any) Option {
	return func(p *options.Program) { p.Sources = append(p.Sources[:len(p.Sources):len(p.Sources)], all...) }
}

// Program returns what the options make.
func Program(given ...Option) (p options.Program) {
	for _, change := range given {
		if change != nil {
			change(&p)
		}
	}
	return p
}

// Resolvers makes resolvers of one scheme.
type Resolvers = options.Builder

// Builder returns the builder of a registered scheme.
func Builder(scheme string, given ...Option) options.Builder {
	return options.For(scheme, apart(given))
}

// apart returns what options make, so that its builders share no last good answers with others of
// equal options: tests are in one process, and have the same targets.
func apart(given []Option) options.Program {
	p := Program(given...)
	p.Sources = append(p.Sources, struct{}{})
	return p
}

// NewBuilder returns a builder for a discovery.Parser.
func NewBuilder(scheme string, parse any, given ...Option) options.Builder {
	return options.Make(scheme, parse, Program(given...))
}

// Builders returns a builder for each registered scheme.
func Builders(given ...Option) []resolver.Builder {
	var all []resolver.Builder
	for _, b := range options.Builders(apart(given)) {
		all = append(all, b)
	}
	return all
}

// Dial returns the dial option that gives a channel all registered builders.
func Dial(given ...Option) grpc.DialOption {
	return grpc.WithResolvers(Builders(given...)...)
}
