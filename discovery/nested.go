package discovery

import (
	"fmt"
	"slices"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/options"
	"github.com/understudy-lb/understudy/internal/printable"
	"github.com/understudy-lb/understudy/internal/xnet"
)

// Parts returns the discovery mechanisms of inner, a target nested in t, such as an entry of a
// failover target. The builder must come from Register or from a source of this module. If it is
// nil, Parts uses the builder registered for inner's scheme. The options of t also apply to inner,
// except those of policies, which apply to the whole target. Each mechanism has its own authority,
// regardless of t's.
func (t *Target) Parts(by resolver.Builder, inner resolver.Target) ([]Mechanism, error) {
	if by == nil {
		by = resolver.Get(inner.URL.Scheme)
	}
	ours, ok := by.(interface{ Reader() any })
	if !ok {
		return nil, fmt.Errorf("no source is registered for scheme %s", printable.Quote(inner.URL.Scheme))
	}
	b := ours.Reader().(*reader)
	within := Target{Target: inner, Channel: t.Channel, ClientConn: t.ClientConn, BuildOptions: t.BuildOptions, asked: t.asked}
	within.given.Program, within.place = nested(b.given, t.given.Program), options.Part
	read, parts, err := b.read(within)
	if err != nil {
		return nil, err
	}
	parts = slices.Clone(parts)
	for i := range parts {
		p := &parts[i]
		switch given := read.given.Authority; {
		case given != "" && !p.own:
			p.Authority, p.own = xnet.EncodeAuthority(given), true
		case p.Authority == "":
			p.Authority = xnet.AuthorityOfEndpoint(inner.Endpoint())
		}
	}
	return parts, nil
}

// nested returns the options of a nested target. The enclosing target's options override those of
// the nested target's builder.
func nested(b, outer options.Program) options.Program {
	if outer.Refresh != 0 {
		b.Refresh = outer.Refresh
	}
	if outer.RemoveAfter != 0 {
		b.RemoveAfter = outer.RemoveAfter
	}
	b.Sources = slices.Concat(b.Sources, outer.Sources)
	b.Settings, b.ServiceConfig = outer.Settings, outer.ServiceConfig
	return b
}
