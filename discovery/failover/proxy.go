package failover

import (
	"fmt"
	"net/http"
	"net/url"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

// proxyFunc is http.ProxyFromEnvironment, which is what gRPC uses too, except in tests.
type proxyFunc func(*http.Request) (*url.URL, error)

func (f proxyFunc) usesProxy(address string) (bool, error) {
	proxy, err := f(&http.Request{URL: &url.URL{Scheme: "https", Host: address}})
	if err != nil {
		return false, fmt.Errorf("cannot tell whether %s needs a proxy: %w", printable.Quote(address), err)
	}
	return proxy != nil, nil
}

// route decides where the name in a DNS entry is looked up, and which addresses we return for it.
// On a channel that uses a proxy, gRPC dials every address through the proxy, unless the address is
// in NO_PROXY. That leaves three cases:
//
//	the entry's name                    is looked up   we return
//	goes through the proxy              by the proxy   just the name
//	same, with WithLocalDNSResolution   locally        the addresses we find
//	is in NO_PROXY                      locally        the addresses we find if they're in NO_PROXY
//	                                                   too, otherwise just the name
//
// In the last case, direct makes that decision for each answer, because NO_PROXY rarely lists the
// addresses of a name. For the first and the last case, route returns the name as host:port.
func (s source) route() (address string, byProxy bool, err error) {
	if s.hasDialer || s.target.URL.Scheme != "dns" || s.options.resolvers["dns"] != nil {
		return "", false, nil // a custom dialer looks up names itself
	}
	// gRPC takes the whole list for one host name when it decides if the channel uses a proxy.
	channelUsesProxy, err := s.options.proxy.usesProxy(s.list)
	if err != nil {
		return "", false, err
	}
	if address, err = hostPort(s.target.Endpoint()); err != nil {
		return "", false, err
	}
	entryUsesProxy, err := s.options.proxy.usesProxy(address)
	switch {
	case err != nil:
	case !channelUsesProxy && entryUsesProxy:
		logger.Warningf("failover: %s is dialled without the proxy, because gRPC takes the whole list for one host name, whose end matches NO_PROXY", s.target.URL.Redacted())
	case entryUsesProxy && !s.options.localDNS, !entryUsesProxy && channelUsesProxy:
		return address, entryUsesProxy, nil
	}
	return "", false, err
}

// direct is for an entry whose name is in NO_PROXY, on a channel that uses a proxy. If any of the
// addresses in found isn't in NO_PROXY, gRPC would dial it through the proxy. In that case, we
// answer with the name instead, which gRPC dials directly.
func (f proxyFunc) direct(found discovery.Answer, name string) discovery.Answer {
	for _, endpoint := range found.Resolved {
		for _, address := range endpoint.Addresses {
			if usesProxy, err := f.usesProxy(address.Addr); err == nil && usesProxy {
				return answerWith(name)
			}
		}
	}
	return found
}

func answerWith(address string) discovery.Answer {
	return discovery.Answer{Resolved: []resolver.Endpoint{{Addresses: []resolver.Address{{Addr: address}}}}}
}
