package hierarchy

import (
	"fmt"
	"testing"

	"google.golang.org/grpc/resolver"
)

// If the number of an endpoint's addresses does not match, their server names cannot be restored,
// so the addresses must not change.
func TestUnmatchedAddressesDoNotChange(t *testing.T) {
	named := func(addresses ...string) resolver.Endpoint {
		e := endpoint(addresses...)
		for i := range e.Addresses {
			e.Addresses[i].ServerName = "name"
		}
		return e
	}
	direct := resolver.Address{Addr: "10.0.0.1:1", ServerName: "name"}
	for name, c := range map[string]struct{ sent, got resolver.Endpoint }{
		"three for two":      {named("192.0.2.1:1", "192.0.2.2:1"), endpoint("proxy1", "proxy2", "proxy3")},
		"one for two":        {named("192.0.2.1:1", "192.0.2.2:1"), endpoint("proxy1")},
		"none for the other": {named("10.0.0.1:1", "10.0.0.1:1", "192.0.2.1:1"), resolver.Endpoint{Addresses: []resolver.Address{direct}}},
	} {
		sealed := Seal(resolver.State{Endpoints: []resolver.Endpoint{Set(c.sent, "p0")}})
		sealed.Endpoints = []resolver.Endpoint{c.got}
		got := Unseal(sealed).Endpoints[0]
		if fmt.Sprint(got.Addresses) != fmt.Sprint(c.got.Addresses) {
			t.Errorf("%s: addresses became %v, want %v", name, got.Addresses, c.got.Addresses)
		}
		if path := Path(got); len(path) != 1 {
			t.Errorf("%s: path %q, want [p0] nevertheless", name, path)
		}
	}
}

// Behind a proxy, all endpoints have equal addresses. They must be distinguished by their
// attributes.
func TestRestoredEndpointsCompareByOriginalAddresses(t *testing.T) {
	restored := func(addresses ...string) resolver.Endpoint {
		return Unseal(throughProxy(Seal(resolver.State{Endpoints: []resolver.Endpoint{Set(endpoint(addresses...), "p0")}}), []string{"proxy"})).Endpoints[0]
	}
	one := restored("192.0.2.1:1", "192.0.2.2:1")
	for _, other := range []resolver.Endpoint{restored("192.0.2.1:1", "192.0.2.3:1"), restored("192.0.2.1:1")} {
		if one.Attributes.Equal(other.Attributes) {
			t.Errorf("%v compares equal to %v", Addresses(one), Addresses(other))
		}
	}
	if !one.Attributes.Equal(restored("192.0.2.1:1", "192.0.2.2:1").Attributes) {
		t.Error("the same addresses compare as different")
	}
}
