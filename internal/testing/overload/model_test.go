package overload

import (
	"flag"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

var (
	whole   = flag.Bool("all", false, "run all worlds with three seeds, and rescaled, instead of a sample")
	only    = flag.String("only", "", "run the worlds whose names match this, with -all")
	most    = flag.Int("seeds", 3, "the number of seeds with -all")
	figures = flag.Bool("figures", false, "print the figures of each world")
)

func TestWorldsKeepTheirBounds(t *testing.T) {
	for i, w := range Worlds() {
		if !regexp.MustCompile(*only).MatchString(w.Name) || !*whole && !sampled(i, w) {
			continue
		}
		seeds := []uint64{1, 2, 3}[:*most]
		if !*whole {
			seeds = seeds[:1]
		}
		for _, seed := range seeds {
			judge(t, w, seed)
		}
		if *whole {
			judge(t, w.Rescaled(uint64(i)), 4)
		}
	}
}

// sampled picks worlds that take about ten seconds together.
func sampled(i int, w World) bool {
	grid := strings.HasPrefix(w.Name, "load ")
	return w.Length.Seconds()*w.Load <= 30_000 && (!grid || i%7 == 0)
}

func judge(t *testing.T, w World, seed uint64) {
	o := Run(w, seed)
	missed := o.Missed()
	if *figures || len(missed) > 0 {
		mark := ""
		if len(missed) > 0 {
			mark = "  <<< " + strings.Join(missed, "; ")
		}
		fmt.Printf("%-60s %d  %v%s\n", w.Name, seed, o, mark)
	}
	if len(missed) > 0 {
		t.Errorf("%s, seed %d: %s", w.Name, seed, strings.Join(missed, "; "))
	}
}
