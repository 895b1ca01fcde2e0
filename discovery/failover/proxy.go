package failover

import (
	"fmt"
	"net/http"
	"net/url"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/printable"
)

// proxyFunc is the type of http.ProxyFromEnvironment, which gRPC also uses.
type proxyFunc func(*http.Request) (*url.URL, error)

func (f proxyFunc) uses(address string) (bool, error) {
	proxy, err := f(&http.Request{URL: &url.URL{Scheme: "https", Host: address}})
	if err != nil {
		return false, fmt.Errorf("cannot tell whether %s needs a proxy: %w", printable.Quote(address), err)
	}
	return proxy != nil, nil
}

type way struct {
	address string // host:port, or "" if the entry's resolver finds the addresses itself
	byProxy bool   // the proxy looks up address; otherwise it is dialled directly
}

// route decides where the name in a DNS entry is looked up and how its addresses are reached. On a
// channel that uses a proxy, gRPC dials every address through the proxy unless NO_PROXY lists it:
//
//	the entry's name               is looked up    and its addresses are
//	goes through the proxy         by the proxy    its name alone
//	same, WithLocalDNSResolution   here            the addresses found
//	is in NO_PROXY                 here            the addresses found if they are in NO_PROXY,
//	                                               too, otherwise its name
//
// In the last case, the type direct handles the answers. It is needed because NO_PROXY rarely lists
// the addresses of a name.
func (s source) route() (way, error) {
	if s.dialer || s.part.target.URL.Scheme != "dns" || s.options.own("dns") != nil {
		return way{}, nil // a custom dialer looks names up itself
	}
	// gRPC takes the whole list for a single host name when it decides whether to use a proxy.
	channel, err := s.options.proxy.uses(s.list)
	if err != nil {
		return way{}, err
	}
	address, err := hostPort(s.part.target.Endpoint())
	if err != nil {
		return way{}, err
	}
	viaProxy, err := s.options.proxy.uses(address)
	switch {
	case err != nil:
		return way{}, err
	case !channel && viaProxy:
		logger.Warningf("failover: %s is dialled without the proxy, because gRPC takes the whole target for one host, whose end NO_PROXY lists", s.part.name)
	case viaProxy && !s.options.localDNS:
		return way{address: address, byProxy: true}, nil
	case !viaProxy && channel:
		return way{address: address}, nil
	}
	return way{}, nil
}

// direct receives the answers for an entry whose name is in NO_PROXY, on a channel that uses a
// proxy. If gRPC would dial one of the addresses through the proxy, direct replaces the endpoints
// by the name itself, which gRPC dials directly.
type direct struct {
	receiver *discovery.Receiver
	address  string
	proxy    proxyFunc
}

func (d direct) update(a discovery.Answer) error {
	for _, endpoint := range a.Resolved {
		for _, address := range endpoint.Addresses {
			if viaProxy, err := d.proxy.uses(address.Addr); err == nil && viaProxy {
				return d.receiver.Update(answerWith(d.address))
			}
		}
	}
	return d.receiver.Update(a)
}

func answerWith(address string) discovery.Answer {
	return discovery.Answer{Resolved: []resolver.Endpoint{{Addresses: []resolver.Address{{Addr: address}}}}}
}
