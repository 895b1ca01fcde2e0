package failover_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/understudy-lb/understudy/discovery/failover"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

func TestParameters(t *testing.T) {
	first, second := startServer(t, "first", insecure.NewCredentials()), startServer(t, "second", insecure.NewCredentials())
	n := newFakeDNS()
	n.set("both", nil, first.address, second.address)
	resolvers := grpc.WithResolvers(given.Builder(failover.Scheme, given.Sources(failover.WithResolvers(n))))
	countCalls := func(query string, connected ...string) map[string]int {
		conn := dial(t, "failover:///lab:%2F%2F%2Fboth?"+query, resolvers, plaintext)
		for _, name := range connected {
			await(t, conn, name+" as both")
		}
		counts := make(map[string]int)
		for range 100 {
			got, err := call(t.Context(), conn)
			if err != nil {
				t.Fatalf("%s: %v", query, err)
			}
			counts[strings.TrimSuffix(got, " as both")]++
		}
		return counts
	}
	if got := countCalls("endpointPolicy=pick_first", "first"); got["first"] != 100 {
		t.Errorf("with pick_first calls went to %v, want the first alone", got)
	}
	if got := countCalls("endpointPolicy=weighted_round_robin&failoverTimeout=5s&ramp=9s&slowStart=10ms", "first", "second"); got["first"] == 0 || got["second"] == 0 {
		t.Errorf("without it calls went to %v, want both", got)
	}
}

func TestAuthorityAppliesToAllEntries(t *testing.T) {
	ca := newCertAuthority(t)
	us, _, resolvers := startTwoServers(t, ca, "front.test", "front.test")
	conn := dial(t, tlsTarget+"?authority=front.test:8443", resolvers, grpc.WithTransportCredentials(ca.client("")))
	await(t, conn, "us as front.test:8443")
	us.server.Stop()
	await(t, conn, "eu as front.test:8443")
}
