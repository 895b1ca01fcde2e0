package balance

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestShares(t *testing.T) {
	even := func(capacities ...float64) (zones []Zone) {
		for _, c := range capacities {
			zones = append(zones, Zone{c, 1})
		}
		return zones
	}
	sixths := []Zone{{1, 2}, {0, 2}, {3, 1}, {3, 1}, {1, 0}}
	for _, test := range []struct {
		about string
		zones []Zone
		own   int
		want  []float64
	}{
		{"three zones, from the largest", even(3, 2, 1), 0, []float64{1, 0, 0}},
		{"that has just enough", even(3, 2, 1), 1, []float64{0, 1, 0}},
		{"from the smallest", even(3, 2, 1), 2, []float64{.5, 0, .5}},
		{"one without endpoints among the callers", sixths, 0, []float64{.375, 0, .240385, .240385, .144231}},
		{"from that one", sixths, 1, []float64{0, 0, 1. / 3 / (26. / 24) * 1.25, 1. / 3 / (26. / 24) * 1.25, .125 / (13. / 24)}},
		{"the own zone is none of them", even(3, 2, 1), -1, []float64{1, 0, 0}},
		{"and nothing is left over", even(1, 1), -1, []float64{.5, .5}},
		{"the own zone died", even(0, 2, 1), 0, []float64{0, 1, 0}},
		{"and nothing else is left over", []Zone{{0, 0}, {1, 1}, {1, 1}}, 0, []float64{0, .5, .5}},
		{"no callers at home", []Zone{{1, 0}, {1, 1}}, 0, []float64{1, 0}},
		{"a caller in four has no endpoints", []Zone{{3, 1}, {2, 1}, {1, 1}, {0, 1}}, 3, []float64{.75, .25, 0, 0}},
		{"rounding is no reason to leave", []Zone{{.1 + .2, .3}, {.7, .7}}, 0, []float64{1, 0}},
		{"no capacity", even(0, 0), 0, []float64{0, 0}},
		{"no zones", nil, -1, nil},
	} {
		got := Shares(test.zones, test.own)
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

// Where callers are as was said, each zone has the part of all calls that it has of the capacity.
func TestTheLoadOfAllCallers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.Custom(func(t *rapid.T) float64 { return float64(rapid.IntRange(0, 7).Draw(t, "number")) })
		zones := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Zone { return Zone{number.Draw(t, "capacity"), number.Draw(t, "callers")} }), 1, 6).Draw(t, "zones")
		capacity, callers := parts(zones, func(z Zone) float64 { return z.Capacity }), parts(zones, func(z Zone) float64 { return z.Callers })
		if sum(capacity) == 0 || sum(callers) == 0 {
			return
		}
		load := make([]float64, len(zones))
		for own := range zones {
			shares := Shares(zones, own)
			if all := sum(shares); math.Abs(all-1) > 1e-9 {
				t.Fatalf("the parts of %v in zone %d sum to %v: %v", zones, own, all, shares)
			}
			if stays := shares[own]; callers[own] > 0 && math.Abs(stays-min(1, capacity[own]/callers[own])) > 1e-6 {
				t.Fatalf("%v of the calls of zone %d of %v stay", stays, own, zones)
			}
			for i := range shares {
				load[i] += callers[own] * shares[i]
			}
		}
		for i := range load {
			if math.Abs(load[i]-capacity[i]) > 1e-6 {
				t.Fatalf("zone %d of %v has %v of the load, want %v", i, zones, load[i], capacity[i])
			}
		}
	})
}
