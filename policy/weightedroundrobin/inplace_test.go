package weightedroundrobin

import (
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/resolver"
)

// A resolver should send new slices. If it changes its endpoints in place and sends the same slices
// again, the policy must detect the changes nevertheless.
func TestEndpointsChangedInPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, want := newPair(t, "in_place"), newPair(t, "new")
		list := []resolver.Endpoint{{Addresses: []resolver.Address{{Addr: "a:1"}}}, {Addresses: []resolver.Address{{Addr: "b:1"}}}}
		p.update(list)
		want.update([]resolver.Endpoint{{Addresses: []resolver.Address{{Addr: "a:1"}}}, {Addresses: []resolver.Address{{Addr: "b:1"}}}})
		list[1].Addresses[0].Addr = "c:1"
		got := p.update(list)
		if w := want.update([]resolver.Endpoint{{Addresses: []resolver.Address{{Addr: "a:1"}}}, {Addresses: []resolver.Address{{Addr: "c:1"}}}}); got != w {
			t.Errorf("the children got %s\nwant %s", got, w)
		}
		p.Close()
		want.Close()
	})
}
