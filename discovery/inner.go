package discovery

import (
	"slices"
	"sync/atomic"

	"google.golang.org/grpc/resolver"
)

// FromResolver returns a source that wraps the gRPC resolver that builder builds for target. Its
// endpoints are one priority. A failed connection to one of them makes the resolver resolve again.
// Pass the ClientConn and the BuildOptions of Target as cc and opts, with changes for this resolver
// if necessary. Service configs are disabled in it. An error from Build is an error of Start, which
// Check cannot foresee.
func FromResolver(builder resolver.Builder, target resolver.Target, cc resolver.ClientConn, opts resolver.BuildOptions) Source {
	opts.DisableServiceConfig = true
	return inner{builder, target, cc, opts}
}

type inner struct {
	builder resolver.Builder
	target  resolver.Target
	cc      resolver.ClientConn
	opts    resolver.BuildOptions
}

// Start implements Source.
func (i inner) Start(r *Receiver) (Started, error) {
	cc := i.cc
	if c, ok := cc.(interface{ Channel() resolver.ClientConn }); ok {
		cc = c.Channel() // or one that does nothing once the channel is closed
	}
	r.Trying("waiting for " + i.target.URL.Redacted())
	of := &innerConn{ClientConn: cc, r: r}
	built, err := i.builder.Build(i.target, of, i.opts)
	if err != nil {
		return Started{}, err
	}
	return Started{Close: func() { of.close(built) }, ResolveNow: func() { built.ResolveNow(resolver.ResolveNowOptions{}) }}, nil
}

// Check implements Source. It finds nothing, because only Build validates the target, and needs a
// channel.
func (inner) Check(bool) error { return nil }

// innerConn is the resolver.ClientConn of the wrapped resolver.
type innerConn struct {
	resolver.ClientConn // parses service configs, and implements additions of gRPC
	r                   *Receiver
	calls               atomic.Int32 // calls of UpdateState in progress
}

// close closes a resolver without blocking: gRPC's resolvers wait for the goroutine that calls
// UpdateState, and Close may be on its stack.
func (c *innerConn) close(built resolver.Resolver) {
	if c.calls.Load() > 0 {
		go built.Close()
		return
	}
	built.Close()
}

// under counts a call in progress until way is called.
func (c *innerConn) under() (way func()) {
	c.calls.Add(1)
	return func() { c.calls.Add(-1) }
}

// UpdateState implements resolver.ClientConn.
func (c *innerConn) UpdateState(state resolver.State) error {
	endpoints := make([]resolver.Endpoint, len(state.Endpoints)) // a copy, because the resolver may change its own
	for i, e := range state.Endpoints {
		e.Addresses = slices.Clone(e.Addresses)
		endpoints[i] = e
	}
	if state.Endpoints == nil { // gRPC's fallback for resolvers that set Addresses only
		for _, address := range state.Addresses {
			attributes := address.BalancerAttributes
			address.BalancerAttributes = nil
			endpoints = append(endpoints, resolver.Endpoint{Addresses: []resolver.Address{address}, Attributes: attributes})
		}
	}
	defer c.under()()
	return c.r.Update(Answer{Resolved: endpoints})
}

// NewAddress implements resolver.ClientConn.
func (c *innerConn) NewAddress(addresses []resolver.Address) {
	_ = c.UpdateState(resolver.State{Addresses: addresses}) // NewAddress returns no error
}

// ReportError implements resolver.ClientConn.
func (c *innerConn) ReportError(err error) {
	defer c.under()()
	c.r.Fail(err)
}
