package discovery

import "google.golang.org/grpc/resolver"

// FromResolver returns a source that wraps the resolver which builder makes for target.
// Its endpoints are one priority; it is asked to resolve again when a connection to one
// of them fails. cc and opts are those of Target, with whatever is to be different for
// this resolver. It is built without service configs.
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
	built, err := i.builder.Build(i.target, &innerConn{i.cc, r}, i.opts)
	if err != nil {
		return nil, err
	}
	return asked{built}, nil
}

// asked is a Watch over a resolver.
type asked struct{ resolver.Resolver }

func (a asked) ResolveNow() { a.Resolver.ResolveNow(resolver.ResolveNowOptions{}) }

// innerConn is what the resolver takes for its channel.
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
