package topology

import (
	"cmp"
	"slices"

	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/experimental/balancer/weight"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
	"github.com/understudy-lb/understudy/internal/lb/inorder"
)

// A path names the child of the priority policy, and the locality.
type path [2]string

// What we last sent to the channel for a locality: its endpoints, and their attributes by weight.
// The next update reuses them, so that policies recognize unchanged values by their pointers. We
// never modify addresses and attributes.
type builtLocality struct {
	endpoints  []resolver.Endpoint
	attributes map[uint32]*attributes.Attributes
}

func (t *Translator) build(to []resolver.Endpoint, l *discovery.Locality, childPath path, last builtLocality) ([]resolver.Endpoint, builtLocality) {
	b, before := builtLocality{attributes: last.attributes}, len(to)
	if b.attributes == nil || len(b.attributes) > len(l.Endpoints) { // attributes of weights that are no longer used
		b.attributes = make(map[uint32]*attributes.Attributes)
	}
	var search inorder.Search
	for k := range l.Endpoints {
		e := &l.Endpoints[k]
		if !isUsable(e.Health) {
			continue
		}
		serverName := t.ServerName
		if t.TrustNames {
			serverName = cmp.Or(e.Hostname, serverName)
		}
		isSame := func(a resolver.Address, address string) bool { return a.Addr == address && a.ServerName == serverName }
		var endpoint resolver.Endpoint
		if i := search.Find(len(last.endpoints), func(i int) bool { return slices.EqualFunc(last.endpoints[i].Addresses, e.Addresses, isSame) }); i >= 0 {
			endpoint = last.endpoints[i]
		} else {
			for _, address := range e.Addresses {
				endpoint.Addresses = append(endpoint.Addresses, resolver.Address{Addr: address, ServerName: serverName})
			}
		}
		if w := weightOf(e); weight.FromEndpoint(endpoint).Weight != w {
			if b.attributes[w] == nil {
				b.attributes[w] = hierarchy.Set(weight.Set(resolver.Endpoint{}, weight.EndpointInfo{Weight: w}), childPath[0], childPath[1]).Attributes
			}
			endpoint.Attributes = b.attributes[w]
		}
		to = append(to, endpoint)
	}
	b.endpoints = to[before:len(to):len(to)]
	return to, b
}
