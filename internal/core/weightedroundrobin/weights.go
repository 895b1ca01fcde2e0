package weightedroundrobin

import (
	"math"
	"math/bits"
)

func addSaturating(a, b uint32) uint32 {
	sum, carry := bits.Add32(a, b, 0)
	if carry != 0 {
		return math.MaxUint32
	}
	return sum
}

// scaleDown scales the weight of one of n endpoints, so that the weights of all, which add up to
// sum, add up to at most math.MaxUint32. sum must be greater than that. A result is rounded down,
// but is at least 1:
//
//	weights 4294967295 4294967295 1  ->  2147483645 2147483645 1
func scaleDown(weight uint32, sum uint64, n int) uint32 {
	// A result that is raised to 1 adds at most 1 to the sum.
	room := uint64(math.MaxUint32 - uint32(n))
	high, low := bits.Mul64(uint64(weight), room)
	scaled, _ := bits.Div64(high, low, sum)
	return max(1, uint32(scaled))
}
