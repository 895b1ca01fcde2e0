// Command bench compares ways of picking by weight, and prints one Markdown table of
// medians from one run, and a second one of what bring-up and updates cost:
//
//	go run ./internal/edf/bench
//
// Times of different machines, or of one machine at different times, say little about
// each other: read the ratios to the floor, one atomic add on a shared counter, which
// is measured in turn with everything else. The machine should be otherwise idle.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"time"
)

func main() {
	counts := flag.Int("counts", 6, "how often each cell is measured; the median is printed")
	span := flag.Duration("span", 40*time.Millisecond, "how long each measurement takes, about")
	most := flag.Int("most", 100_000, "the largest number of endpoints")
	flag.Parse()
	if *counts < 1 {
		fmt.Fprintf(os.Stderr, "bench: -counts is %d, want at least 1\n", *counts)
		os.Exit(2)
	}

	fmt.Printf("%s, %s/%s, %d cores; medians of %d counts of about %v.\n\n",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), *counts, *span)
	var t table
	t.header()
	for _, d := range distributions {
		for n := 10; n <= *most; n *= 10 {
			t.row(measureRow(d, n, *counts, *span))
		}
	}
	t.footer()
	updates(*counts, *most)
}
