package discovery

import (
	"slices"

	"google.golang.org/grpc/resolver"
)

// FromResolver returns a source that wraps the resolver that builder builds for target. The
// resolver's endpoints form one priority, and a failed connection to one of them triggers a
// re-resolution. For cc and opts, pass the ClientConn and BuildOptions of Target, with any changes
// that this resolver needs. The resolver's service configs are disabled. If Build fails, Start
// returns the error, since Check has no way to predict it.
func FromResolver(builder resolver.Builder, target resolver.Target, cc resolver.ClientConn, opts resolver.BuildOptions) Source {
	opts.DisableServiceConfig = true
	return resolverSource{builder, target, cc, opts}
}

type resolverSource struct {
	builder resolver.Builder
	target  resolver.Target
	cc      resolver.ClientConn
	opts    resolver.BuildOptions
}

func (i resolverSource) Start(r *Receiver) (Started, error) {
	cc := i.cc
	if c, ok := cc.(interface{ Channel() resolver.ClientConn }); ok {
		cc = c.Channel() // if the channel is closed, this ClientConn does nothing
	}
	r.Trying("waiting for " + i.target.URL.Redacted())
	conn := &resolverConn{ClientConn: cc, r: r}
	wrapped, err := i.builder.Build(i.target, conn, i.opts)
	if err != nil {
		return Started{}, err
	}
	return Started{
		// The Close method of gRPC's resolvers waits for a running UpdateState, which may be our caller.
		Close:      func() { go wrapped.Close() },
		ResolveNow: func() { wrapped.ResolveNow(resolver.ResolveNowOptions{}) },
	}, nil
}

// Check returns nil, since only Build can detect errors, and it needs a channel.
func (resolverSource) Check(bool) error { return nil }

// resolverConn is the resolver.ClientConn that we pass to the wrapped resolver.
type resolverConn struct {
	resolver.ClientConn // has ParseServiceConfig, and any methods that gRPC may add later
	r                   *Receiver
}

func (c *resolverConn) UpdateState(state resolver.State) error {
	endpoints := make([]resolver.Endpoint, len(state.Endpoints)) // copied, because the resolver may reuse its slice
	for i, e := range state.Endpoints {
		e.Addresses = slices.Clone(e.Addresses)
		endpoints[i] = e
	}
	if state.Endpoints == nil { // gRPC converts addresses to endpoints in the same way
		for _, address := range state.Addresses {
			attributes := address.BalancerAttributes
			address.BalancerAttributes = nil
			endpoints = append(endpoints, resolver.Endpoint{Addresses: []resolver.Address{address}, Attributes: attributes})
		}
	}
	return c.r.Update(Answer{Resolved: endpoints})
}

func (c *resolverConn) NewAddress(addresses []resolver.Address) {
	_ = c.UpdateState(resolver.State{Addresses: addresses})
}

func (c *resolverConn) ReportError(err error) {
	c.r.Fail(err)
}
