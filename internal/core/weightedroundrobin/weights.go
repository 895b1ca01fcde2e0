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

// scaleDown scales one of n weights that add up to sum, which must exceed math.MaxUint32.
// Afterwards they add up to at most math.MaxUint32. The result is rounded down but never below 1:
//
//	weights 4294967295 4294967295 1  ->  2147483645 2147483645 1
func scaleDown(weight uint32, sum uint64, n int) uint32 {
	// Each weight that we raise from 0 to 1 adds 1 to the sum, so we leave room for n of those.
	room := uint64(math.MaxUint32 - uint32(n))
	high, low := bits.Mul64(uint64(weight), room)
	scaled, _ := bits.Div64(high, low, sum)
	return max(1, uint32(scaled))
}
