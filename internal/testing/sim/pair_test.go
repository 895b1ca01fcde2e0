package sim

import (
	"flag"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

var pairFlag = flag.String("sim.pair", "", "pairs of simultaneous faults, such as kill+hang,hang+ends, or all; empty for none")

// TestPairs simulates each pair of faults with -sim.seeds seeds or, if -sim.for is set, a different
// pair with each new seed for that long.
func TestPairs(t *testing.T) {
	all := pairs()
	if len(all) != 66 {
		t.Fatalf("%d pairs of faults, want 66", len(all))
	}
	switch *pairFlag {
	case "":
		return
	case "all":
	default:
		all = strings.Split(*pairFlag, ",")
	}
	first := *firstSeed
	if first == 0 {
		first = rand.Uint64N(1 << 48)
	}
	begin := time.Now()
	for i := 0; *runFor > 0 && time.Since(begin) < *runFor; i++ {
		if seed := first + uint64(i); !live(t, seed, all[seed%uint64(len(all))]) {
			return
		}
	}
	for i := 0; *runFor == 0 && i < *seeds; i++ {
		for _, pair := range all {
			live(t, first+uint64(i), pair)
		}
	}
}
