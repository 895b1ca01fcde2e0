package failover

import (
	"fmt"
	"net/http"
	"net/url"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/printable"
)

// proxyFunc is the type of http.ProxyFromEnvironment, which gRPC asks too.
type proxyFunc func(*http.Request) (*url.URL, error)

// uses reports whether a connection to address would go through a proxy.
func (f proxyFunc) uses(address string) (bool, error) {
	proxy, err := f(&http.Request{URL: &url.URL{Scheme: "https", Host: address}})
	if err != nil {
		return false, fmt.Errorf("cannot tell whether %s needs a proxy: %w", printable.Quote(address), err)
	}
	return proxy != nil, nil
}

// way says how the endpoints of a part are found and reached.
type way struct {
	address string // host:port of the part; empty: its resolver finds them
	byProxy bool   // the proxy looks address up; else address is dialled without it
}

// route decides for a DNS part whether its name is looked up here. On a channel
// that uses a proxy, gRPC sends every address that it is given through it, except
// those in NO_PROXY, so:
//
//	the part's name                 is looked up    and its addresses are
//	goes through the proxy          by the proxy    its name alone
//	goes, WithLocalDNSResolution    here            what was found
//	is in NO_PROXY                  here            what was found if that is in
//	                                                NO_PROXY as well, else its name
//
// The last row is what direct is for: NO_PROXY seldom lists the addresses behind the
// names.
func (s source) route() (way, error) {
	if s.dialer || s.part.target.URL.Scheme != "dns" || s.options.own("dns") != nil {
		return way{}, nil // a dialer does it itself
	}
	// gRPC asks for the proxy of the whole target, as if it were one host.
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

// direct passes on a part's endpoints so that the channel dials them without its proxy.
type direct struct {
	receiver *discovery.Receiver
	address  string // of the part, by name
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

// answerWith returns an answer with one endpoint.
func answerWith(address string) discovery.Answer {
	return discovery.Answer{Resolved: []resolver.Endpoint{{Addresses: []resolver.Address{{Addr: address}}}}}
}
