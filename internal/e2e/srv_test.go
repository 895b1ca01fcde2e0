package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// The weight of an SRV record is the share of its name, whose three addresses get a third of it
// each.
func TestCallsReachAllAddressesOfRecord(t *testing.T) {
	first := startServer(t, "first", nil)
	port := first.address[strings.LastIndex(first.address, ":")+1:]
	startServerOn(t, "second", "127.0.0.2:"+port, nil)
	startServerOn(t, "third", "127.0.0.3:"+port, nil)
	other := startServer(t, "other", nil)
	dns := startDNS(t)
	dns.Set("three.test", "A", "127.0.0.1", "127.0.0.2", "127.0.0.3")
	dns.Set("one.test", "A", "127.0.0.1")
	dns.Set("_grpc._tcp.shop.test", "SRV", "0 1 "+port+" three.test.", "0 1 "+other.address[strings.LastIndex(other.address, ":")+1:]+" one.test.")
	cc := newClient(t, fmt.Sprintf("srv://%s/shop.test", dns.Address()))
	ctx := timeoutContext(t, eventTimeout)
	for _, name := range []string{"first", "second", "third", "other"} {
		awaitName(ctx, t, cc, name)
	}
	counts := make(map[string]int)
	for range 120 {
		a, err := who(ctx, cc)
		if err != nil {
			t.Fatal(err)
		}
		counts[a.name]++
	}
	for name, want := range map[string]int{"first": 20, "second": 20, "third": 20, "other": 60} {
		if n := counts[name]; n < want-5 || n > want+5 {
			t.Errorf("of 120 calls, the backends answer %v, want %d from %s", counts, want, name)
		}
	}
}
