// Package balance decides which part of a client's calls goes to which zone, so that calls stay in
// their zone as far as all endpoints can have the same load. It is the formula of Envoy's zone-aware
// routing, with shares in place of chance.
package balance

// Zone is a zone in which there are endpoints or callers. Both numbers are in units of their own, and
// at least 0.
type Zone struct {
	Capacity float64 // the weight of the endpoints that can take calls
	Callers  float64 // how many clients there are, or their calls
}

// Shares returns the part of the calls of a client in the zone own that goes to each zone, own being
// an index, or -1 for none of them. The parts sum to 1, or are all 0 where nothing has capacity.
//
// With U and L the parts of all capacity and of all callers that a zone has:
//   - Where the own zone has no endpoints or no callers, calls go where capacity is left over, in
//     proportion to max(0, U-L), or where none is, in proportion to U.
//   - Where it has as much of the capacity as of the callers, or more, all calls stay in it.
//   - Otherwise U/L of them stay, and the others go where capacity is left over.
func Shares(zones []Zone, own int) []float64 {
	capacity, callers := parts(zones, func(z Zone) float64 { return z.Capacity }), parts(zones, func(z Zone) float64 { return z.Callers })
	shares := make([]float64, len(zones))
	left := 1.0 // what does not stay
	if own >= 0 && capacity[own] > 0 && callers[own] > 0 {
		shares[own] = min(1, capacity[own]/callers[own])
		if left = 1 - shares[own]; left < least {
			shares[own], left = 1, 0
		}
	}
	over := make([]float64, len(zones))
	for i := range zones {
		if more := capacity[i] - callers[i]; more > least {
			over[i] = more
		}
	}
	if sum(over) == 0 {
		over = capacity
	}
	if all := sum(over); all > 0 {
		for i := range over {
			shares[i] += left * over[i] / all
		}
	}
	return shares
}

// least is less than the part of a call in a billion. What is less comes of rounding.
const least = 1e-9

// parts returns the part of the whole that each zone has of something, 0 where there is none.
func parts(zones []Zone, of func(Zone) float64) []float64 {
	list := make([]float64, len(zones))
	for i, z := range zones {
		list[i] = of(z)
	}
	if all := sum(list); all > 0 {
		for i := range list {
			list[i] /= all
		}
	}
	return list
}

func sum(list []float64) (all float64) {
	for _, x := range list {
		all += x
	}
	return all
}
