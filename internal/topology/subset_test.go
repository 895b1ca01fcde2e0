package topology_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"google.golang.org/grpc/balancer"
	_ "google.golang.org/grpc/balancer/randomsubsetting"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/testing/lbtest"
	"github.com/understudy-lb/understudy/internal/topology"
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

func subsetOf(endpoints []resolver.Endpoint, size int, seed uint64) (addresses []string) {
	tree := topology.Join(topology.Settings{Subset: size, ChannelSeed: seed}, topology.Targets([]topology.Target{{Name: "p", Endpoints: endpoints}}))
	for _, e := range tree.Endpoints {
		addresses = append(addresses, e.Addresses[0].Addr)
	}
	return addresses
}

// 1,000 clients use 20 of 5,000 endpoints each. An endpoint has 4 clients on average, and none may
// have many more (gRFC A68).
func TestSubsetsSpreadTheClients(t *testing.T) {
	endpoints, clients := plain(upTo(5000)...), make(map[string]int)
	for seed := range uint64(1000) {
		subset := subsetOf(endpoints, 20, seed)
		if len(subset) != 20 {
			t.Fatalf("a subset has %d endpoints, want 20", len(subset))
		}
		for _, a := range subset {
			clients[a]++
		}
	}
	most, none := 0, 5000-len(clients)
	for _, n := range clients {
		most = max(most, n)
	}
	if most > 18 || none > 125 {
		t.Errorf("an endpoint has %d clients and %d endpoints none, want at most 18, and 125 (2.5 %%)", most, none)
	}
	t.Logf("most clients of an endpoint: %d; endpoints without: %.2f %%", most, float64(none)/50)
}

// 500 endpoints are replaced one after another. When an endpoint of its subset is replaced, a
// client makes about two connections: one to the endpoint with the next rank, and later one to a
// new endpoint with a lower rank.
func TestARollingReplacementCostsTwoConnections(t *testing.T) {
	made, lost := 0, 0
	for seed := range uint64(5) {
		numbers := upTo(500)
		before := subsetOf(plain(numbers...), 20, seed)
		start := slices.Clone(before)
		for i := range numbers {
			numbers[i] += 500
			after := subsetOf(plain(numbers...), 20, seed)
			for _, a := range after {
				if !slices.Contains(before, a) {
					made++
				}
			}
			before = after
		}
		lost += len(start)
	}
	if each := float64(made) / float64(lost); each > 2.1 {
		t.Errorf("%.2f connections were made for each endpoint that was replaced, want at most 2.1", each)
	} else {
		t.Logf("%.2f connections for each endpoint that was replaced", each)
	}
}

const subsetChild = "topology_test_subset_child"

var subsetStubs = &lbtest.StubBuilder{PolicyName: subsetChild}

func init() { balancer.Register(subsetStubs) }

func TestSubsetsAreSpreadAsThoseOfGRPC(t *testing.T) {
	const clients, size, n, bins = 500, 10, 2000, 10
	endpoints := plain(upTo(n)...)
	builder := balancer.Get("random_subsetting_experimental")
	config, err := builder.(balancer.ConfigParser).ParseConfig(fmt.Appendf(nil, `{"subsetSize": %d, "childPolicy": [{%q: {"id": "x"}}]}`, size, subsetChild))
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := make(map[string]int), make(map[string]int)
	for seed := range uint64(clients) {
		for _, a := range subsetOf(endpoints, size, seed) {
			ours[a]++
		}
		var last balancer.ClientConnState
		subsetStubs.OnUpdate = func(_ *lbtest.Stub, s balancer.ClientConnState) error { last = s; return nil }
		b := builder.Build(&lbtest.ClientConn{}, balancer.BuildOptions{})
		if err := b.UpdateClientConnState(balancer.ClientConnState{BalancerConfig: config, ResolverState: resolver.State{Endpoints: endpoints}}); err != nil {
			t.Fatal(err)
		}
		b.Close()
		for _, e := range last.ResolverState.Endpoints {
			theirs[e.Addresses[0].Addr]++
		}
	}
	var histogram [2][bins + 1]int
	for i, of := range []map[string]int{ours, theirs} {
		sum := 0
		for _, e := range endpoints {
			histogram[i][min(of[e.Addresses[0].Addr], bins)]++
			sum += of[e.Addresses[0].Addr]
		}
		if sum != clients*size {
			t.Errorf("%d connections, want %d", sum, clients*size)
		}
	}
	apart := 0.0
	for k := range histogram[0] {
		apart += math.Abs(float64(histogram[0][k]-histogram[1][k])) / 2 / n
	}
	if apart > 0.1 {
		t.Errorf("histogram of clients per endpoint is %v, in gRPC-Go %v: they differ by %.1f %%, want at most 10", histogram[0], histogram[1], 100*apart)
	}
	t.Logf("histogram of clients per endpoint is %v, in gRPC-Go %v: they differ by %.1f %%", histogram[0], histogram[1], 100*apart)
}

// Each locality has its own subset. Duplicates of an endpoint count once. The order and the weights
// of endpoints do not matter.
func TestASubsetIsOfALocality(t *testing.T) {
	answer := answerOf(t, "0 us weight=7: a*9 b c d", "0 eu weight=1: e f*5", "1 us weight=2: g h i j")
	settings := topology.Settings{Subset: 2, ChannelSeed: 3}
	one, all := new(topology.Translator), new(topology.Translator)
	part, _ := one.Translate(answer)
	whole, _ := all.Translate(answer)
	part, whole = topology.Join(settings, part), topology.Join(topology.Settings{}, whole)
	if len(part.Endpoints) != 6 || len(whole.Endpoints) != 10 {
		t.Errorf("%d of %d endpoints are used, want 6 of 10", len(part.Endpoints), len(whole.Endpoints))
	}
	if string(part.Config()) != string(whole.Config()) {
		t.Errorf("a subset changes the configuration:\n%s\n%s", part.Config(), whole.Config())
	}
	if got, want := part.Size()+"; "+whole.Size(), "6 of 10 endpoints in 2 priorities; 10 endpoints in 2 priorities"; got != want {
		t.Errorf("the sizes are %q, want %q", got, want)
	}
	twice := append(plain(upTo(50)...), plain(upTo(50)...)...)
	slices.Reverse(twice)
	twice = append(twice, resolver.Endpoint{})
	got := subsetOf(twice, 10, 1)
	slices.Sort(got)
	once := subsetOf(plain(upTo(50)...), 10, 1)
	slices.Sort(once)
	if len(got) != 20 || !slices.Equal(slices.Compact(got), once) {
		t.Errorf("the subset of endpoints that are listed twice is %q, want each of %q twice", got, once)
	}
}
