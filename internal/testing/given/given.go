// Package given creates resolver builders with options, for tests. Programs use
// understudy.Options.
package given

import (
	"reflect"

	"google.golang.org/grpc"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/options"
	_ "github.com/understudy-lb/understudy/internal/resolving"
)

type Option func(*options.Program)

func Set(field string, value any) Option {
	return func(p *options.Program) {
		f := reflect.ValueOf(p).Elem().FieldByName(field)
		f.Set(reflect.ValueOf(value).Convert(f.Type()))
	}
}

func MinReady(minReady, recovery float64) Option {
	return func(p *options.Program) { p.MinReady, p.MinReadyRecovery = minReady, recovery }
}

func Sources(all ...any) Option {
	return func(p *options.Program) { p.Sources = append(p.Sources[:len(p.Sources):len(p.Sources)], all...) }
}

func Program(given ...Option) (p options.Program) {
	for _, change := range given {
		if change != nil {
			change(&p)
		}
	}
	return p
}

type Resolvers = options.Builder

func Builder(scheme string, given ...Option) options.Builder {
	return options.For(scheme, apart(given))
}

// apart returns options that are unique, so that channels of this builder share no stored answers
// with others. All tests of a package run in one process and use the same targets.
func apart(given []Option) options.Program {
	p := Program(given...)
	p.Sources = append(p.Sources, struct{}{})
	return p
}

func NewBuilder(scheme string, parse any, given ...Option) options.Builder {
	return options.Make(scheme, parse, Program(given...))
}

func Builders(given ...Option) []resolver.Builder {
	var all []resolver.Builder
	for _, b := range options.Builders(apart(given)) {
		all = append(all, b)
	}
	return all
}

func Dial(given ...Option) grpc.DialOption {
	return grpc.WithResolvers(Builders(given...)...)
}
