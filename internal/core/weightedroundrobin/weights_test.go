package weightedroundrobin

import (
	"math"
	"slices"
	"testing"
	"time"
)

func TestScaledWeightsFitTheLimit(t *testing.T) {
	for _, weights := range [][]uint32{
		{math.MaxUint32, 1},
		{math.MaxUint32, math.MaxUint32, 1},
		{math.MaxUint32, 1, 1, 1, 1, 1, 1, 1, 1, 1},
		{math.MaxUint32 - 1, 2},
		{1 << 31, 1 << 30},
		append([]uint32{math.MaxUint32, math.MaxUint32}, slices.Repeat([]uint32{1}, 100)...),
	} {
		for _, slow := range []SlowStart{{}, {Window: time.Minute, Aggression: 1, MinWeightPercent: 50}} {
			core := New[int]()
			core.config.SlowStart = slow
			for _, child := range update(core, weights...) {
				core.Reported(child, Ready, time.Time{})
			}
			_, scaled := core.Ready(time.Time{})
			var sum uint64
			for _, w := range scaled {
				sum += uint64(w)
			}
			last := len(weights) - 1
			if sum > math.MaxUint32 || slices.Contains(scaled, 0) || scaled[0] < 1<<29 || weights[last] == 1 && scaled[last] != 1 {
				t.Errorf("%v with %+v: scaled to %v", weights, slow, scaled)
			}
		}
	}
}
