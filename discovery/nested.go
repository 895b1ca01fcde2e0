package discovery

import (
	"cmp"
	"fmt"
	"slices"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/config/options"
	"github.com/understudy-lb/understudy/internal/net/xnet"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

// Mechanisms returns the discovery mechanisms of inner, which is a target nested in t, e.g. an
// entry of a failover target. The builder must come from Register or from a source of this module.
// If it's nil, we use the builder registered for inner's scheme. The options of t also apply to
// inner, except for those of policies, which apply to the whole target. Each mechanism has its own
// authority, regardless of t's.
func (t *Target) Mechanisms(builder resolver.Builder, inner resolver.Target) ([]Mechanism, error) {
	registered, ok := cmp.Or(builder, resolver.Get(inner.URL.Scheme)).(interface{ Reader() any })
	if !ok {
		return nil, fmt.Errorf("no source is registered for scheme %s", printable.Quote(inner.URL.Scheme))
	}
	nestedReader := registered.Reader().(*reader)
	nestedTarget := Target{Target: inner, Channel: t.Channel, ClientConn: t.ClientConn, BuildOptions: t.BuildOptions, scope: options.Entry}
	program, outer := nestedReader.program, t.options.Program
	program.Refresh, program.RemoveAfter = cmp.Or(outer.Refresh, program.Refresh), cmp.Or(outer.RemoveAfter, program.RemoveAfter)
	program.Sources, program.Settings = slices.Concat(program.Sources, outer.Sources), outer.Settings
	nestedTarget.options.Program = program
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
