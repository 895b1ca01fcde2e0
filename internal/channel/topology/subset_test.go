package topology_test

import (
	"fmt"
	"slices"
	"testing"

	_ "google.golang.org/grpc/balancer/randomsubsetting"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/channel/topology"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

func plain(numbers ...int) (list []resolver.Endpoint) {
	for _, n := range numbers {
		list = append(list, resolver.Endpoint{Addresses: []resolver.Address{{Addr: fmt.Sprintf("10.%d.%d.%d:443", n>>16, n>>8&255, n&255)}}})
	}
	return list
}

func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

func subsetOf(t *testing.T, endpoints []resolver.Endpoint, size int, seed uint64) (addresses []string) {
	t.Helper()
	tree := join(t, topology.Settings{Subset: size, ChannelSeed: seed}, topology.Plain("p", "", endpoints))
	for _, e := range tree.Endpoints {
		addresses = append(addresses, e.Addresses[0].Addr)
	}
	return addresses
}

// Each of 200 clients uses 20 of 1,000 endpoints. An endpoint has 4 clients on average, and no
// endpoint may have many more (gRFC A68).
func TestSubsetsSpreadClients(t *testing.T) {
	endpoints, clients := plain(upTo(1000)...), make(map[string]int)
	for seed := range uint64(200) {
		subset := subsetOf(t, endpoints, 20, seed)
		if len(subset) != 20 {
			t.Fatalf("a subset has %d endpoints, want 20", len(subset))
		}
		for _, a := range subset {
			clients[a]++
		}
	}
	most, unused := 0, 1000-len(clients)
	for _, n := range clients {
		most = max(most, n)
	}
	if most > 18 || unused > 25 {
		t.Errorf("an endpoint has %d clients and %d endpoints none, want at most 18, and 25 (2.5 %%)", most, unused)
	}
	t.Logf("most clients of an endpoint: %d; endpoints without: %.2f %%", most, float64(unused)/10)
}

// 500 endpoints are replaced one after another. For each replaced endpoint of its subset, a client
// must make only about two connections: the first to the endpoint with the next rank, and later
// another to a new endpoint with a lower rank.
func TestRollingReplacementMakesTwoConnections(t *testing.T) {
	opened, replaced := 0, 0
	for seed := range uint64(5) {
		numbers := upTo(500)
		before := subsetOf(t, plain(numbers...), 20, seed)
		start := slices.Clone(before)
		for i := range numbers {
			numbers[i] += 500
			after := subsetOf(t, plain(numbers...), 20, seed)
			for _, a := range after {
				if !slices.Contains(before, a) {
					opened++
				}
			}
			before = after
		}
		replaced += len(start)
	}
	if perEndpoint := float64(opened) / float64(replaced); perEndpoint > 2.1 {
		t.Errorf("%.2f connections were made for each endpoint that was replaced, want at most 2.1", perEndpoint)
	} else {
		t.Logf("%.2f connections for each endpoint that was replaced", perEndpoint)
	}
}

// Each locality must have its own subset. Duplicates of an endpoint must count as one endpoint. The
// order and the weights of endpoints must have no effect on the subset.
func TestSubsetOfEachLocality(t *testing.T) {
	answer := answerOf(t, "0 us weight=7: a*9 b c d", "0 eu weight=1: e f*5", "1 us weight=2: g h i j")
	settings := topology.Settings{Subset: 2, ChannelSeed: 3}
	subsetTranslator, allTranslator := new(topology.Translator), new(topology.Translator)
	subsetTree, _ := subsetTranslator.Translate(answer)
	fullTree, _ := allTranslator.Translate(answer)
	subset, full := join(t, settings, subsetTree), join(t, topology.Settings{}, fullTree)
	if len(subset.Endpoints) != 6 || len(full.Endpoints) != 10 {
		t.Errorf("%d of %d endpoints are used, want 6 of 10", len(subset.Endpoints), len(full.Endpoints))
	}
	if lbtest.JSON(subset.Config()) != lbtest.JSON(full.Config()) {
		t.Errorf("a subset changes the configuration:\n%s\n%s", lbtest.JSON(subset.Config()), lbtest.JSON(full.Config()))
	}
	if got, want := subset.Size()+"; "+full.Size(), "6 of 10 endpoints in 2 priorities; 10 endpoints in 2 priorities"; got != want {
		t.Errorf("the sizes are %q, want %q", got, want)
	}
	duplicated := append(plain(upTo(50)...), plain(upTo(50)...)...)
	slices.Reverse(duplicated)
	duplicated = append(duplicated, resolver.Endpoint{})
	got := subsetOf(t, duplicated, 10, 1)
	slices.Sort(got)
	distinct := subsetOf(t, plain(upTo(50)...), 10, 1)
	slices.Sort(distinct)
	if len(got) != 20 || !slices.Equal(slices.Compact(got), distinct) {
		t.Errorf("the subset of endpoints that are listed twice is %q, want each of %q twice", got, distinct)
	}
}

func join(t *testing.T, settings topology.Settings, tree topology.Tree) topology.Update {
	t.Helper()
	policies, err := topology.NewPolicies(settings)
	if err != nil {
		t.Fatal(err)
	}
	return policies.Combine(tree)
}
