// Command edf compares weighted pickers. It prints a Markdown table of medians:
//
//	go run ./test/bench/edf
//
// You can't compare times of different machines or runs. Compare the ratios to the floor instead.
// That's the time of one atomic add on a shared counter, which we measure in alternation with the
// pickers. Don't run anything else on the machine.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"time"
)

func main() {
	counts := flag.Int("counts", 6, "number of measurements per cell, of which the median is printed")
	span := flag.Duration("span", 40*time.Millisecond, "approximate duration of each measurement")
	most := flag.Int("most", 100_000, "largest number of endpoints")
	flag.Parse()
	if *counts < 1 {
		fmt.Fprintf(os.Stderr, "bench: -counts is %d, want at least 1\n", *counts)
		os.Exit(2)
	}

	fmt.Printf("%s, %s/%s, %d cores; medians of %d measurements of about %v.\n\n",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), *counts, *span)
	var t table
	t.header()
	for _, d := range distributions {
		for n := 10; n <= *most; n *= 10 {
			t.row(measureRow(d, n, *counts, *span))
		}
	}
	t.footer()
}
