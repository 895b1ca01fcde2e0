package weightedroundrobin

import (
	"math"
	"math/bits"
)

// addSaturating returns a + b, or math.MaxUint32 if the sum overflows.
func addSaturating(a, b uint32) uint32 {
	sum, carry := bits.Add32(a, b, 0)
	if carry != 0 {
		return math.MaxUint32
	}
	return sum
}

// scaleDown scales the weight of one of n endpoints so that the results for all endpoints sum
// to at most math.MaxUint32. sum is the sum of the original weights and must exceed
// math.MaxUint32. A result is proportional to the weight and rounded down, but at least 1:
//
//	weights 4294967295 4294967295 1  ->  2147483645 2147483645 1
func scaleDown(weight uint32, sum uint64, n int) uint32 {
	// Endpoints that are rounded up to 1 add at most n.
	room := uint64(math.MaxUint32 - uint32(n))
	high, low := bits.Mul64(uint64(weight), room)
	scaled, _ := bits.Div64(high, low, sum)
	return max(1, uint32(scaled))
}
