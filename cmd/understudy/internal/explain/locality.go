package explain

import (
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/core/pickfirst"
	"github.com/understudy-lb/understudy/internal/core/weightedroundrobin"
)

// A locality simulates the policy of one locality: weighted_round_robin over its endpoints, or
// pick_first over all of its addresses.
type locality struct {
	pickFirst bool
	core      *weightedroundrobin.Core[*endpoint]
	addresses []address   // only with pick_first: the addresses of all endpoints, in order
	endpoints []*endpoint // with pick_first, a single endpoint with all addresses
}

// An endpoint simulates the pick_first policy of one endpoint.
type endpoint struct {
	leaf          *weightedroundrobin.Child[*endpoint] // nil if pick_first runs over the whole locality
	addresses     []address                            // in the order in which pick_first tries them
	connectedAddr int                                  // index of the first address that connects, or -1
}

type address struct {
	resolver.Address
	owner *Endpoint
}

func addressesOf(e resolver.Endpoint, owners map[mechanismAddress]*Endpoint) []address {
	addresses := make([]address, len(e.Addresses))
	for i, a := range e.Addresses {
		addresses[i] = address{a, owners[mechanismAddressOf(a)]}
	}
	return addresses
}

func newLocality(pickFirst bool) *locality {
	l := &locality{pickFirst: pickFirst, core: weightedroundrobin.New[*endpoint]()}
	l.core.Begin(weightedroundrobin.Config{}, 0)
	return l
}

func (l *locality) add(addresses []address, weight uint32) {
	if l.pickFirst {
		l.addresses = append(l.addresses, addresses...)
		return
	}
	key := make([]weightedroundrobin.Address, len(addresses))
	for i, a := range addresses {
		key[i] = weightedroundrobin.Address{Addr: a.Addr, ServerName: a.ServerName}
	}
	leaf, kind := l.core.Endpoint(weightedroundrobin.KeyOf(key), weight)
	if kind == weightedroundrobin.NewChild {
		leaf.Attached = newEndpoint(addresses)
		leaf.Attached.leaf = leaf
		l.endpoints = append(l.endpoints, leaf.Attached)
	}
}

func (l *locality) finish() {
	if l.core.Endpoints(); len(l.addresses) > 0 {
		l.endpoints = []*endpoint{newEndpoint(l.addresses)}
	}
}

// newEndpoint returns an endpoint whose addresses are in the order in which pick_first tries them
// (gRFC A61).
func newEndpoint(addresses []address) *endpoint {
	if len(addresses) == 1 {
		return &endpoint{addresses: addresses}
	}
	e := &endpoint{addresses: make([]address, len(addresses))}
	families := make([]pickfirst.Family, len(addresses))
	for i, a := range addresses {
		families[i] = pickfirst.FamilyOf(a.Addr)
	}
	for i, j := range pickfirst.Interleave(families) {
		e.addresses[i] = addresses[j]
	}
	return e
}

func (e *endpoint) connect(down func(*Endpoint, string) bool) {
	e.connectedAddr = slices.IndexFunc(e.addresses, func(a address) bool { return !down(a.owner, a.Addr) })
}

func (e *endpoint) connected() bool { return e.connectedAddr >= 0 }

// failure returns the error of the last connection attempt, as pick_first reports it.
func (e *endpoint) failure() string {
	lastErr := e.addresses[len(e.addresses)-1].Addr + " is down"
	if len(e.addresses) == 1 {
		return lastErr
	}
	return fmt.Sprintf("all %d addresses failed, the last with: %s", len(e.addresses), lastErr)
}

func (l *locality) reportStates() {
	if l.pickFirst {
		return
	}
	for _, e := range l.endpoints {
		state := weightedroundrobin.TransientFailure
		if e.connected() {
			state = weightedroundrobin.Ready
		}
		l.core.Reported(e.leaf, state, time.Time{})
	}
}

func (l *locality) ready() bool {
	if l.pickFirst {
		return len(l.endpoints) > 0 && l.endpoints[0].connected()
	}
	return l.core.State() == weightedroundrobin.Ready
}

// addShares distributes a fraction of the calls over the endpoints of a ready locality: it adds
// each endpoint's share to the map.
func (l *locality) addShares(calls float64, shares map[*Endpoint]float64) {
	sum := 0.0
	for _, e := range l.endpoints {
		if e.connected() {
			sum += e.weight()
		}
	}
	for _, e := range l.endpoints {
		if e.connected() {
			shares[e.addresses[e.connectedAddr].owner] += calls * e.weight() / sum
		}
	}
}

func (e *endpoint) weight() float64 {
	if e.leaf == nil {
		return 1
	}
	return float64(e.leaf.Weight())
}

func (l *locality) failure() string {
	switch {
	case len(l.endpoints) == 0:
		return "it has no endpoints"
	case l.pickFirst:
		return l.endpoints[0].failure()
	}
	return l.core.Failed().Attached.failure()
}
