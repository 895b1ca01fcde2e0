package weightedtarget

// Shares returns the share of a client's calls that each zone receives. As many calls as possible
// stay in the client's zone, provided that all endpoints get the same load. The formula is that of
// Envoy's zone-aware routing, but the shares are exact instead of random.
//
// capacity is the weight of the endpoints in each zone that can receive calls. callers is the
// number of clients in each zone, or a multiple of it. client is the index of the client's zone, or
// -1 if it is not one of the zones. The shares add up to 1, or are all 0 if no zone has capacity.
//
// Let U be a zone's share of all capacity, and L its share of all callers:
//   - If the client's zone has no capacity or no callers, calls go to the zones with spare
//     capacity, in proportion to U-L. If no zone has spare capacity, calls go to all zones in
//     proportion to U.
//   - If U >= L in the client's zone, all calls stay there.
//   - Otherwise U/L of the calls stay, and the other calls go to the zones with spare capacity.
func Shares(capacity, callers []float64, client int) []float64 {
	capacity, callers = sharesOf(capacity), sharesOf(callers)
	shares := make([]float64, len(capacity))
	remaining := 1.0
	if client >= 0 && capacity[client] > 0 && callers[client] > 0 {
		shares[client] = min(1, capacity[client]/callers[client])
		if remaining = 1 - shares[client]; remaining < rounding {
			shares[client], remaining = 1, 0
		}
	}
	spare := make([]float64, len(capacity))
	for i := range spare {
		if excess := capacity[i] - callers[i]; excess > rounding {
			spare[i] = excess
		}
	}
	if sum(spare) == 0 {
		spare = capacity
	}
	for i, share := range sharesOf(spare) {
		shares[i] += remaining * share
	}
	return shares
}

const rounding = 1e-9

func sharesOf(values []float64) []float64 {
	shares := make([]float64, len(values))
	if total := sum(values); total > 0 {
		for i, value := range values {
			shares[i] = value / total
		}
	}
	return shares
}

func sum(values []float64) (total float64) {
	for _, value := range values {
		total += value
	}
	return total
}
