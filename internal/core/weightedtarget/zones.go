package weightedtarget

// Shares returns the share of a client's calls that each zone receives. As many calls as possible
// stay in the client's own zone, as long as all endpoints get the same load. The formula is that of
// Envoy's zone-aware routing, but the shares are exact instead of random.
//
// capacity is the weight of the endpoints in each zone that can receive calls. callers is the
// number of clients in each zone, or a multiple of it. own is the index of the client's zone, or
// -1. The shares add up to 1, or are all 0 if no zone has capacity.
//
// Let U be a zone's share of all capacity, and L its share of all callers:
//   - If the own zone has no capacity or no callers, calls go to zones with spare capacity, in
//     proportion to max(0, U-L). If there are none, calls go to all zones in proportion to U.
//   - If U >= L in the own zone, all calls stay there.
//   - Otherwise U/L of the calls stay, and the rest go to the zones with spare capacity.
func Shares(capacity, callers []float64, own int) []float64 {
	capacity, callers = sharesOf(capacity), sharesOf(callers)
	shares := make([]float64, len(capacity))
	left := 1.0
	if own >= 0 && capacity[own] > 0 && callers[own] > 0 {
		shares[own] = min(1, capacity[own]/callers[own])
		if left = 1 - shares[own]; left < rounding {
			shares[own], left = 1, 0
		}
	}
	spare := make([]float64, len(capacity))
	for i := range spare {
		if more := capacity[i] - callers[i]; more > rounding {
			spare[i] = more
		}
	}
	if sum(spare) == 0 {
		spare = capacity
	}
	for i, share := range sharesOf(spare) {
		shares[i] += left * share
	}
	return shares
}

const rounding = 1e-9

func sharesOf(values []float64) []float64 {
	shares := make([]float64, len(values))
	if all := sum(values); all > 0 {
		for i, value := range values {
			shares[i] = value / all
		}
	}
	return shares
}

func sum(values []float64) (all float64) {
	for _, value := range values {
		all += value
	}
	return all
}
