package failover

import (
	"fmt"
	"net/http"
	"net/url"

	"google.golang.org/grpc/resolver"
)

// proxyFunc is the type of http.ProxyFromEnvironment, which gRPC asks too.
type proxyFunc func(*http.Request) (*url.URL, error)

// uses reports whether a connection to address would go through a proxy.
func (f proxyFunc) uses(address string) (bool, error) {
	proxy, err := f(&http.Request{URL: &url.URL{Scheme: "https", Host: address}})
	if err != nil {
		return false, fmt.Errorf("failover: cannot tell whether %s needs a proxy: %w", quote(address), err)
	}
	return proxy != nil, nil
}

// route decides for each DNS part whether its name is looked up here. On a channel
// that uses a proxy, gRPC sends every address that it is given through it, except
// those in NO_PROXY, so:
//
//	the part's name                 is looked up    and its addresses are
//	goes through the proxy          by the proxy    its name alone
//	goes, WithLocalDNSResolution    here            what was found
//	is in NO_PROXY                  here            what was found if that is in
//	                                                NO_PROXY as well, else its name
//
// The last is why direct is set: NO_PROXY seldom lists the numbers behind the names.
func (b *builder) route(target resolver.Target, parts []part, opts resolver.BuildOptions) error {
	if opts.Dialer != nil {
		return nil // the dialer does it
	}
	// gRPC asks for the proxy of the whole target, as if it were one host.
	channel, err := b.proxy.uses(target.Endpoint())
	if err != nil {
		return err
	}
	for i := range parts {
		p := &parts[i]
		if p.target.URL.Scheme != "dns" || b.own("dns") != nil {
			continue
		}
		address, err := hostPort(p.target.Endpoint())
		if err != nil {
			return err
		}
		viaProxy, err := b.proxy.uses(address)
		switch {
		case err != nil:
			return err
		case !channel && viaProxy:
			logger.Warningf("failover: %s is dialled without the proxy, because gRPC takes the whole target for one host, whose end NO_PROXY lists", p.name)
		case viaProxy && !b.localDNS:
			p.builder = unresolved(address)
		case !viaProxy && channel:
			p.direct = address
		}
	}
	return nil
}

// keepDirect returns endpoints, those of p, in a form that the channel dials without
// its proxy, if p is to be.
func (f proxyFunc) keepDirect(p part, endpoints []resolver.Endpoint) []resolver.Endpoint {
	if p.direct == "" {
		return endpoints
	}
	for _, endpoint := range endpoints {
		for _, address := range endpoint.Addresses {
			if viaProxy, err := f.uses(address.Addr); err == nil && viaProxy {
				return []resolver.Endpoint{{Addresses: []resolver.Address{{Addr: p.direct}}}}
			}
		}
	}
	return endpoints
}

// unresolved builds resolvers that answer with the host:port that it is.
type unresolved string

// Scheme implements resolver.Builder.
func (unresolved) Scheme() string { return "dns" }

// Build implements resolver.Builder.
func (u unresolved) Build(_ resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) (resolver.Resolver, error) {
	// Whether the update was liked is no matter of this resolver: it has no other.
	_ = cc.UpdateState(resolver.State{Endpoints: []resolver.Endpoint{
		{Addresses: []resolver.Address{{Addr: string(u)}}},
	}})
	return fixed{}, nil
}

// fixed is a resolver that never answers anew.
type fixed struct{}

// ResolveNow implements resolver.Resolver.
func (fixed) ResolveNow(resolver.ResolveNowOptions) {}

// Close implements resolver.Resolver.
func (fixed) Close() {}
