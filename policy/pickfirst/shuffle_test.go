package pickfirst

import (
	"hash/maphash"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/experimental/balancer/weight"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"
)

func parseConfig(t *testing.T, raw string) serviceconfig.LoadBalancingConfig {
	t.Helper()
	config, err := newBuilder("x").(balancer.ConfigParser).ParseConfig([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// A new endpoint gets a random position. The other endpoints must keep their order.
func TestShuffleKeepsOrderOfOtherEndpoints(t *testing.T) {
	positions := map[int]int{}
	for range 200 {
		seed := maphash.MakeSeed()
		before := names(addressesOf(endpoints("a", "b", "c", "d"), &seed))
		after := names(addressesOf(endpoints("d", "x", "c", "b", "a"), &seed))
		position := slices.Index(after, "x")
		positions[position]++
		if rest := slices.Delete(after, position, position+1); !slices.Equal(rest, before) {
			t.Fatalf("the order changed: got %[2]v, want %[1]v", before, rest)
		}
	}
	if len(positions) != 5 {
		t.Errorf("the new endpoint was at positions %v, want all five", positions)
	}
}

// Older versions of grpc-go had an environment variable for shuffling. Our policy must ignore it. It
// must not change the order in the resolver's state.
func TestEnvironmentVariableIsIgnored(t *testing.T) {
	for _, value := range []string{"", "true", "false"} {
		t.Setenv("GRPC_EXPERIMENTAL_PICKFIRST_LB_CONFIG", value)
		for _, s := range []resolver.State{endpoints("a", "b", "c"), {Addresses: endpointAddresses([]string{"a", "b", "c"})}} {
			if first := firstAddresses(t, s, `{}`); len(first) != 1 {
				t.Errorf("%q: %v were tried first without shuffling", value, first)
			}
			if first := firstAddresses(t, s, `{"shuffleAddressList": true}`); len(first) != 3 {
				t.Errorf("%q: only %v were ever tried first", value, first)
			}
			if list := names(addressesOf(s, nil)); !slices.Equal(list, []string{"a", "b", "c"}) {
				t.Errorf("the state's order changed to %v", list)
			}
		}
	}
}

func firstAddresses(t *testing.T, s resolver.State, raw string) map[string]bool {
	t.Helper()
	config := parseConfig(t, raw)
	first := map[string]bool{}
	for range 200 {
		cc, p := build(t)
		if err := p.UpdateClientConnState(balancer.ClientConnState{ResolverState: s, BalancerConfig: config}); err != nil {
			t.Fatal(err)
		}
		first[cc.SubConns()[0].Addresses[0].Addr] = true
	}
	return first
}

// Duplicates are removed, and then the address families alternate (gRFC A61).
func TestListIsUniqueAndInterleaved(t *testing.T) {
	for given, want := range map[string]string{
		"a a":                                   "a",
		"1.0.0.1:1 1.0.0.2:1 [::1]:1 1.0.0.1:1": "1.0.0.1:1 [::1]:1 1.0.0.2:1",
	} {
		if got := strings.Join(names(addressesOf(endpoints(strings.Fields(given)...), nil)), " "); got != want {
			t.Errorf("%s became %s, want %s", given, got, want)
		}
	}
}

// The probability that an endpoint is first must be proportional to its weight (gRFC A113). The
// addresses of an endpoint must stay together and in order.
func TestShuffleFollowsWeights(t *testing.T) {
	s := endpoints("a", "b", "c")
	for i, w := range []uint32{1, 3, 6} {
		s.Endpoints[i] = weight.Set(s.Endpoints[i], weight.EndpointInfo{Weight: w})
		s.Endpoints[i].Addresses = append(s.Endpoints[i].Addresses, resolver.Address{Addr: s.Endpoints[i].Addresses[0].Addr + "2"})
	}
	const draws = 20_000
	counts := map[string]int{}
	for range draws {
		seed := maphash.MakeSeed()
		list := names(addressesOf(s, &seed))
		counts[list[0]]++
		for i := 0; i < len(list); i += 2 {
			if list[i+1] != list[i]+"2" {
				t.Fatalf("the order is %v, want each endpoint's addresses together", list)
			}
		}
	}
	// With 2 degrees of freedom, chi-squared is above 30 by chance in three of ten million runs.
	var chi2 float64
	for name, share := range map[string]float64{"a": 0.1, "b": 0.3, "c": 0.6} {
		d := float64(counts[name]) - share*draws
		chi2 += d * d / (share * draws)
	}
	if chi2 > 30 {
		t.Errorf("the first addresses are %v with chi-squared %.1f, want shares of 1, 3 and 6", counts, chi2)
	}
}
