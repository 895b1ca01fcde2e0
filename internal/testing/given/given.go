// Package given creates resolver builders with options, for tests. Programs use understudy.Options
// instead.
package given

import (
	"reflect"
	"runtime/debug"

	"google.golang.org/grpc"
	"google.golang.org/grpc/resolver"

	_ "github.com/understudy-lb/understudy/internal/channel/join"
	"github.com/understudy-lb/understudy/internal/config/options"
)

// Tests produce a lot of garbage. Collecting it less often saves a tenth of the CPU time.
func init() { debug.SetGCPercent(400) }

type Option func(*options.Program)

func Set(field string, value any) Option {
	return func(p *options.Program) {
		f := reflect.ValueOf(p).Elem().FieldByName(field)
		f.Set(reflect.ValueOf(value).Convert(f.Type()))
	}
}

func Sources(sourceOptions ...any) Option {
	return func(p *options.Program) {
		p.Sources = append(p.Sources[:len(p.Sources):len(p.Sources)], sourceOptions...)
	}
}

func Program(opts ...Option) (p options.Program) {
	for _, opt := range opts {
		if opt != nil {
			opt(&p)
		}
	}
	return p
}

type Resolvers = options.Builder

func Builder(scheme string, opts ...Option) options.Builder {
	return options.BuilderFor(scheme, withDummySource(opts))
}

func withDummySource(opts []Option) options.Program {
	// Builders that have source options don't share stored answers with others. Without this, tests
	// of the same package would affect each other, since they run in one process and use the same
	// targets.
	p := Program(opts...)
	p.Sources = append(p.Sources, struct{}{})
	return p
}

func NewBuilder(scheme string, parse any, opts ...Option) options.Builder {
	return options.Make(scheme, parse, Program(opts...))
}

func Builders(opts ...Option) []resolver.Builder {
	var builders []resolver.Builder
	for _, b := range options.Builders(withDummySource(opts)) {
		builders = append(builders, b)
	}
	return builders
}

func Dial(opts ...Option) grpc.DialOption {
	return grpc.WithResolvers(Builders(opts...)...)
}
