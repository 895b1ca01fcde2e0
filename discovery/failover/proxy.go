package failover

import (
	"fmt"
	"net/http"
	"net/url"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

// proxyFunc is the type of http.ProxyFromEnvironment, which gRPC also uses.
type proxyFunc func(*http.Request) (*url.URL, error)

func (f proxyFunc) usesProxy(address string) (bool, error) {
	proxy, err := f(&http.Request{URL: &url.URL{Scheme: "https", Host: address}})
	if err != nil {
		return false, fmt.Errorf("cannot tell whether %s needs a proxy: %w", printable.Quote(address), err)
	}
	return proxy != nil, nil
}

// route determines where the name in a DNS entry is looked up, and how its addresses are reached.
// On a channel that uses a proxy, gRPC dials every address through the proxy unless NO_PROXY lists
// it:
//
//	the entry's name               is looked up    and its addresses are
//	goes through the proxy         by the proxy    its name alone
//	same, WithLocalDNSResolution   here            the addresses found
//	is in NO_PROXY                 here            the addresses found if they are in NO_PROXY,
//	                                               too, otherwise its name
//
// In the last case, direct decides for each answer, because NO_PROXY rarely lists the addresses
// of a name. In the first and the last case, route returns the name, as host:port.
func (s source) route() (address string, byProxy bool, err error) {
	if s.hasDialer || s.target.URL.Scheme != "dns" || s.options.resolvers["dns"] != nil {
		return "", false, nil // a custom dialer looks up names itself
	}
	// When gRPC decides whether the channel uses a proxy, it treats the whole list as one host
	// name.
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

// direct returns the answer for an entry whose name is in NO_PROXY, on a channel that uses a proxy. If
// gRPC would dial one of the addresses that were found through the proxy, the answer is the name
// itself, which gRPC dials directly.
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
