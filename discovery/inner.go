package discovery

import "google.golang.org/grpc/resolver"

// FromResolver returns a source that wraps the resolver which builder makes for target.
// Its endpoints are one priority. It is asked to resolve again when a connection to one
// of them fails. Pass the ClientConn and BuildOptions of Target as cc and opts, with
// what is to be different for this resolver. Service configs are disabled in it. An
// error of Build is one of Start.
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
func (i inner) Start(r Receiver) (Watch, error) {
	cc := i.cc
	if c, ok := cc.(*conn); ok {
		cc = c.channel()
	}
	built, err := i.builder.Build(i.target, &innerConn{cc, r}, i.opts)
	if err != nil {
		return nil, err
	}
	return asked{built}, nil
}

// asked makes a Watch of a resolver.
type asked struct{ resolver.Resolver }

func (a asked) ResolveNow() { a.Resolver.ResolveNow(resolver.ResolveNowOptions{}) }

// innerConn stands for the channel before the resolver.
type innerConn struct {
	resolver.ClientConn // parses service configs, and has what gRPC adds
	r                   Receiver
}

// UpdateState implements resolver.ClientConn.
func (c *innerConn) UpdateState(state resolver.State) error {
	endpoints := state.Endpoints
	if endpoints == nil { // as gRPC reads them
		for _, address := range state.Addresses {
			attributes := address.BalancerAttributes
			address.BalancerAttributes = nil
			endpoints = append(endpoints, resolver.Endpoint{Addresses: []resolver.Address{address}, Attributes: attributes})
		}
	}
	return c.r.Update(Answer{Endpoints: endpoints})
}

// NewAddress implements resolver.ClientConn.
func (c *innerConn) NewAddress(addresses []resolver.Address) {
	_ = c.UpdateState(resolver.State{Addresses: addresses}) // cannot be returned
}

// ReportError implements resolver.ClientConn.
func (c *innerConn) ReportError(err error) { c.r.Fail(err) }
