package weightedtarget

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

type load struct{ capacity, callers float64 }

func split(zones []load) (capacity, callers []float64) {
	for _, z := range zones {
		capacity, callers = append(capacity, z.capacity), append(callers, z.callers)
	}
	return capacity, callers
}

func sharesAmong(zones []load, client int) []float64 {
	capacity, callers := split(zones)
	return Shares(capacity, callers, client)
}

func TestShares(t *testing.T) {
	equalCallers := func(capacities ...float64) (zones []load) {
		for _, c := range capacities {
			zones = append(zones, load{c, 1})
		}
		return zones
	}
	sixths := []load{{1, 2}, {0, 2}, {3, 1}, {3, 1}, {1, 0}}
	for _, test := range []struct {
		about  string
		zones  []load
		client int
		want   []float64
	}{
		{"from the largest of three zones", equalCallers(3, 2, 1), 0, []float64{1, 0, 0}},
		{"the middle zone, with just enough capacity", equalCallers(3, 2, 1), 1, []float64{0, 1, 0}},
		{"from the smallest zone", equalCallers(3, 2, 1), 2, []float64{.5, 0, .5}},
		{"a zone with callers has no endpoints", sixths, 0, []float64{.375, 0, .240385, .240385, .144231}},
		{"from the zone without endpoints", sixths, 1, []float64{0, 0, 1. / 3 / (26. / 24) * 1.25, 1. / 3 / (26. / 24) * 1.25, .125 / (13. / 24)}},
		{"the own zone is not in the list", equalCallers(3, 2, 1), -1, []float64{1, 0, 0}},
		{"the own zone is not in the list, no spare capacity", equalCallers(1, 1), -1, []float64{.5, .5}},
		{"the own zone has no capacity", equalCallers(0, 2, 1), 0, []float64{0, 1, 0}},
		{"the own zone has no capacity, no spare capacity", []load{{0, 0}, {1, 1}, {1, 1}}, 0, []float64{0, .5, .5}},
		{"no callers in the own zone", []load{{1, 0}, {1, 1}}, 0, []float64{1, 0}},
		{"the own zone of a quarter of the callers has no endpoints", []load{{3, 1}, {2, 1}, {1, 1}, {0, 1}}, 3, []float64{.75, .25, 0, 0}},
		{"a rounding error does not move calls", []load{{.1 + .2, .3}, {.7, .7}}, 0, []float64{1, 0}},
		{"no capacity", equalCallers(0, 0), 0, []float64{0, 0}},
		{"no zones", nil, -1, nil},
	} {
		got := sharesAmong(test.zones, test.client)
		if len(got) != len(test.want) {
			t.Fatalf("%s: %v, want %v", test.about, got, test.want)
		}
		for i := range got {
			if math.Abs(got[i]-test.want[i]) > 1e-6 {
				t.Errorf("%s: %v, want %v", test.about, got, test.want)
				break
			}
		}
	}
}

// If all clients divide their calls according to Shares, the load of each zone must be proportional
// to its capacity.
func TestLoadIsProportionalToCapacity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.Custom(func(t *rapid.T) float64 { return float64(rapid.IntRange(0, 7).Draw(t, "number")) })
		zones := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) load { return load{number.Draw(t, "capacity"), number.Draw(t, "callers")} }), 1, 6).Draw(t, "zones")
		capacity, callers := split(zones)
		capacity, callers = sharesOf(capacity), sharesOf(callers)
		if sum(capacity) == 0 || sum(callers) == 0 {
			return
		}
		received := make([]float64, len(zones))
		for client := range zones {
			shares := sharesAmong(zones, client)
			if all := sum(shares); math.Abs(all-1) > 1e-9 {
				t.Fatalf("the shares of %v in zone %d sum to %v: %v", zones, client, all, shares)
			}
			if ownShare := shares[client]; callers[client] > 0 && math.Abs(ownShare-min(1, capacity[client]/callers[client])) > 1e-6 {
				t.Fatalf("%v of the calls of zone %d of %v stay", ownShare, client, zones)
			}
			for i := range shares {
				received[i] += callers[client] * shares[i]
			}
		}
		for i := range received {
			if math.Abs(received[i]-capacity[i]) > 1e-6 {
				t.Fatalf("zone %d of %v has %v of the load, want %v", i, zones, received[i], capacity[i])
			}
		}
	})
}
