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

type path [2]string // child of understudy_priority, and locality

// builtLocality is what we last sent to the channel for a locality. Its attributes are keyed by
// weight. We reuse both fields in the next update, so that policies only have to compare pointers
// to see that nothing has changed. Addresses and attributes must never be modified.
type builtLocality struct {
	endpoints  []resolver.Endpoint
	attributes map[uint32]*attributes.Attributes
}

func (t *Translator) build(to []resolver.Endpoint, l *discovery.Locality, childPath path, last builtLocality) ([]resolver.Endpoint, builtLocality) {
	b, before := builtLocality{attributes: last.attributes}, len(to)
	if b.attributes == nil || len(b.attributes) > len(l.Endpoints) { // drop attributes of weights that nobody uses anymore
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
