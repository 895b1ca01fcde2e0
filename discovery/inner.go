package discovery

import (
	"slices"
	"sync/atomic"

	"google.golang.org/grpc/resolver"
)

// FromResolver returns a source that wraps the resolver that builder builds for target. The
// resolver's endpoints form one priority, and a failed connection to one of them triggers a
// re-resolution. Pass the ClientConn and BuildOptions of Target as cc and opts, with any changes
// for this resolver. Service configs of the resolver are disabled. If Build fails, Start returns
// the error; Check cannot predict it.
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

func (i inner) Start(r *Receiver) (Started, error) {
	cc := i.cc
	if c, ok := cc.(interface{ Channel() resolver.ClientConn }); ok {
		cc = c.Channel() // after Close, c.Channel returns a ClientConn that does nothing
	}
	r.Trying("waiting for " + i.target.URL.Redacted())
	of := &innerConn{ClientConn: cc, r: r}
	built, err := i.builder.Build(i.target, of, i.opts)
	if err != nil {
		return Started{}, err
	}
	return Started{Close: func() { of.close(built) }, ResolveNow: func() { built.ResolveNow(resolver.ResolveNowOptions{}) }}, nil
}

// Check implements Source. It returns nil, because only Build could find errors, and Build needs a
// channel.
func (inner) Check(bool) error { return nil }

// innerConn is the resolver.ClientConn of a wrapped resolver.
type innerConn struct {
	resolver.ClientConn // implements ParseServiceConfig, and methods that later versions of gRPC may add
	r                   *Receiver
	calls               atomic.Int32
}

// close closes the wrapped resolver. Close of gRPC's resolvers waits for a running UpdateState. If
// close may have been called from inside UpdateState, it therefore calls Close on another
// goroutine.
func (c *innerConn) close(built resolver.Resolver) {
	if c.calls.Load() > 0 {
		go built.Close()
		return
	}
	built.Close()
}

// under counts a call of the channel as running until the returned function is called.
func (c *innerConn) under() (way func()) {
	c.calls.Add(1)
	return func() { c.calls.Add(-1) }
}

func (c *innerConn) UpdateState(state resolver.State) error {
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
	defer c.under()()
	return c.r.Update(Answer{Resolved: endpoints})
}

func (c *innerConn) NewAddress(addresses []resolver.Address) {
	_ = c.UpdateState(resolver.State{Addresses: addresses})
}

func (c *innerConn) ReportError(err error) {
	defer c.under()()
	c.r.Fail(err)
}
