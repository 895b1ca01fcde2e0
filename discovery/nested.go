package discovery

import (
	"fmt"
	"slices"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/config/options"
	"github.com/understudy-lb/understudy/internal/net/xnet"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

// Mechanisms returns the discovery mechanisms of inner, a target nested in t, such as an entry of a
// failover target. The builder must come from Register or from a source of this module. If it is
// nil, Mechanisms uses the builder registered for inner's scheme. The options of t also apply to
// inner, except those of policies, which apply to the whole target. Each mechanism has its own
// authority, regardless of t's.
func (t *Target) Mechanisms(builder resolver.Builder, inner resolver.Target) ([]Mechanism, error) {
	if builder == nil {
		builder = resolver.Get(inner.URL.Scheme)
	}
	registered, ok := builder.(interface{ Reader() any })
	if !ok {
		return nil, fmt.Errorf("no source is registered for scheme %s", printable.Quote(inner.URL.Scheme))
	}
	nestedReader := registered.Reader().(*reader)
	nestedTarget := Target{Target: inner, Channel: t.Channel, ClientConn: t.ClientConn, BuildOptions: t.BuildOptions}
	nestedTarget.options.Program, nestedTarget.scope = nestedOptions(nestedReader.program, t.options.Program), options.Entry
	read, mechanisms, err := nestedReader.read(nestedTarget)
	if err != nil {
		return nil, err
	}
	mechanisms = slices.Clone(mechanisms)
	for i := range mechanisms {
		p := &mechanisms[i]
		switch authority := read.options.Authority; {
		case authority != "" && !p.authorityFromOption:
			p.Authority, p.authorityFromOption = xnet.EncodeAuthority(authority), true
		case p.Authority == "":
			p.Authority = xnet.AuthorityOfEndpoint(inner.Endpoint())
		}
	}
	return mechanisms, nil
}

// nestedOptions returns the options of a nested target. program holds the options of the nested
// target's builder, and outer those of the enclosing target, which take precedence.
func nestedOptions(program, outer options.Program) options.Program {
	if outer.Refresh != 0 {
		program.Refresh = outer.Refresh
	}
	if outer.RemoveAfter != 0 {
		program.RemoveAfter = outer.RemoveAfter
	}
	program.Sources = slices.Concat(program.Sources, outer.Sources)
	program.Settings, program.ServiceConfig = outer.Settings, outer.ServiceConfig
	return program
}
