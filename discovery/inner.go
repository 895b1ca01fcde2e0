package discovery

import (
	"slices"
	"sync/atomic"

	"google.golang.org/grpc/resolver"
)

// FromResolver returns a source that wraps the resolver which builder makes for target.
// Its endpoints are one priority. It is asked to resolve again when a connection to one
// of them fails. Pass the ClientConn and BuildOptions of Target as cc and opts, with
// what is to be different for this resolver. Service configs are disabled in it. An
// error of Build is one of Start, which Check cannot foresee.
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
		cc = c.Channel() // or what does nothing once that is closed
	}
	r.Trying("waiting for " + i.target.URL.Redacted())
	of := &innerConn{ClientConn: cc, r: r}
	built, err := i.builder.Build(i.target, of, i.opts)
	if err != nil {
		return Started{}, err
	}
	return Started{Close: func() { of.close(built) }, ResolveNow: func() { built.ResolveNow(resolver.ResolveNowOptions{}) }}, nil
}

// Check implements Source. Only Build knows, which needs a channel.
func (inner) Check(bool) error { return nil }

// innerConn stands for the channel before the resolver.
type innerConn struct {
	resolver.ClientConn // parses service configs, and has what gRPC adds
	r                   *Receiver
	calls               atomic.Int32 // that are under way
}

// close closes a resolver. Those of gRPC wait for the goroutine that calls UpdateState, and Close
// may be on its stack.
func (c *innerConn) close(built resolver.Resolver) {
	if c.calls.Load() > 0 {
		go built.Close()
		return
	}
	built.Close()
}

// under notes that a call is under way until the function that it returns is called.
func (c *innerConn) under() (way func()) {
	c.calls.Add(1)
	return func() { c.calls.Add(-1) }
}

// UpdateState implements resolver.ClientConn.
func (c *innerConn) UpdateState(state resolver.State) error {
	endpoints := make([]resolver.Endpoint, len(state.Endpoints)) // what the resolver may change later
	for i, e := range state.Endpoints {
		e.Addresses = slices.Clone(e.Addresses)
		endpoints[i] = e
	}
	if state.Endpoints == nil { // as gRPC reads them
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
	_ = c.UpdateState(resolver.State{Addresses: addresses}) // cannot be returned
}

// ReportError implements resolver.ClientConn.
func (c *innerConn) ReportError(err error) {
	defer c.under()()
	c.r.Fail(err)
}
