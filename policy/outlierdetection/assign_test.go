package outlierdetection

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"google.golang.org/grpc/resolver"
)

// Lists that differ by a few endpoints are handled without a look at all subchannels. The outcome is
// that of a policy which looks at all of them: endpoints have several addresses, share them, and
// subchannels have addresses that no endpoint has.
func TestAssignAgainstAllSubConns(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 50))
		p := &policy{}
		p.unbound = make(map[*subConn]struct{})
		var subConns []*subConn
		addresses := 2 + r.IntN(40)
		address := func() resolver.Address { return resolver.Address{Addr: fmt.Sprint(r.IntN(addresses))} }
		var given []resolver.Endpoint
		for range 30 {
			for range 1 + r.IntN(2) {
				switch e := (resolver.Endpoint{Addresses: []resolver.Address{address()}}); {
				case r.IntN(3) > 0 || len(given) == 0:
					if r.IntN(8) == 0 {
						e.Addresses = append(e.Addresses, address())
					}
					given = append(given, e)
				default:
					i := r.IntN(len(given))
					given = slices.Delete(slices.Clone(given), i, i+1)
				}
			}
			if r.IntN(3) == 0 {
				s := &subConn{policy: p, address: only([]resolver.Address{address()})}
				subConns = append(subConns, s)
				p.unbound[s] = struct{}{}
				p.bindLocked(s)
			}
			list := p.list(given)
			p.assign(list, p.added, p.removed)
			check(t, p, list, subConns)
		}
	}
}

func check(t *testing.T, p *policy, list []*endpoint, subConns []*subConn) {
	t.Helper()
	unbound := 0
	for _, s := range subConns {
		e := s.endpoint.Load()
		var owners []*endpoint
		for _, other := range list {
			if slices.ContainsFunc(other.Attached.addresses, func(a resolver.Address) bool { return a.Addr == s.address.Addr }) {
				owners = append(owners, other)
			}
		}
		if e == nil && len(owners) > 0 || e != nil && !slices.Contains(owners, e) {
			t.Fatalf("a subchannel to %s belongs to %v, want one of %v", s.address.Addr, e, owners)
		}
		if e == nil {
			unbound++
		} else if !slices.Contains(e.Attached.subConns, s) {
			t.Fatalf("the endpoint of a subchannel to %s does not list it", s.address.Addr)
		}
	}
	if unbound != len(p.unbound) || len(p.all()) != len(subConns) {
		t.Fatalf("%d of %d subchannels are without an endpoint, recorded are %d of %d", unbound, len(subConns), len(p.unbound), len(p.all()))
	}
}
