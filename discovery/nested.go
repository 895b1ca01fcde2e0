package discovery

import (
	"maps"
	"slices"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/authority"
)

// partParameters are the common parameters that a part of a target may have. The others
// are about the policies, and a channel has one tree of them.
var partParameters = map[string]func(*options, string) error{"authority": parameters["authority"]}

// Parts returns the parts of inner, a target within t that b reads, such as an entry of a
// failover target. The options of t hold for it, after those of b. Options about the
// policies are t's alone. Each part has its own authority, whether t has one or not.
func (t *Target) Parts(b *Builder, inner resolver.Target) ([]Part, error) {
	within := Target{Target: inner, Channel: t.Channel, ClientConn: t.ClientConn, BuildOptions: t.BuildOptions}
	within.options = b.options.within(t.options)
	read, parts, err := b.readWith(within, partParameters)
	if err != nil {
		return nil, err
	}
	parts = slices.Clone(parts)
	for i := range parts {
		p := &parts[i]
		switch given := read.options.authority; {
		case given != "" && !p.own:
			p.Authority, p.own = authority.Encode(given), true
		case p.Authority == "":
			p.Authority = authority.OfEndpoint(inner.Endpoint())
		}
	}
	return parts, nil
}

// within returns o, the options of a builder, for a target within one that has the
// options outer.
func (o options) within(outer options) options {
	if outer.refresh.every != nil {
		o.refresh.every = outer.refresh.every
	}
	if outer.refresh.removeAfter != nil {
		o.refresh.removeAfter = outer.refresh.removeAfter
	}
	own := maps.Clone(o.own)
	if own == nil {
		own = outer.own
	} else {
		for key, set := range outer.own {
			own[key] = append(slices.Clone(own[key]), set...)
		}
	}
	o.own = own
	o.settings, o.serviceConfig = outer.settings, outer.serviceConfig
	return o
}
