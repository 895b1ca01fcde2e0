package weightedroundrobin

import (
	"math"
	"slices"
	"testing"
)

func TestScaledWeightsFitTheLimit(t *testing.T) {
	for _, weights := range [][]uint32{
		{math.MaxUint32, 1},
		{math.MaxUint32, math.MaxUint32, 1},
		{math.MaxUint32, 1, 1, 1, 1, 1, 1, 1, 1, 1},
		{math.MaxUint32 - 1, 2},
		append([]uint32{math.MaxUint32, math.MaxUint32}, slices.Repeat([]uint32{1}, 100)...),
	} {
		var sum, scaled uint64
		for _, w := range weights {
			sum += uint64(w)
		}
		for _, w := range weights {
			s := scaleDown(w, sum, len(weights))
			if s == 0 {
				t.Errorf("%v: weight %d became 0", weights, w)
			}
			scaled += uint64(s)
		}
		if scaled > math.MaxUint32 {
			t.Errorf("%v: scaled weights sum to %d", weights, scaled)
		}
	}
}
