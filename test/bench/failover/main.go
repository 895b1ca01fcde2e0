// Command failover measures how long channels get no answers after the backends they use were
// killed. There are two groups of two backends each, on real sockets, and each group has its own
// process. It prints times, and their ratios to the time of grpc-go's round_robin, which is always
// connected to both groups.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"runtime/trace"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/resolver/dns"
)

// dnsPause replaces the 30 s that grpc-go waits between DNS lookups, which would make runs too
// long.
const dnsPause = time.Second

func main() {
	if len(os.Args) > 3 && os.Args[1] == backendVerb {
		exitOn(serveTier(os.Args[2], os.Args[3], os.Args[4:]))
		return
	}
	channels := flag.Int("channels", 1000, "number of channels")
	rounds := flag.Int("rounds", 7, "number of runs of each contestant; the table shows medians")
	only := flag.String("only", "", "run only contestants whose names contain this")
	profile := flag.String("cpuprofile", "", "write CPU profiles of the time without answers to files with this prefix, one for each run")
	traced := flag.String("trace", "", "write execution traces of it to files with this prefix")
	flag.Parse()
	dns.SetMinResolutionInterval(dnsPause)
	exitOn(compare(*only, *channels, *rounds, profiled(*profile, *traced)))
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// compare measures every contestant once per round, so if the machine is slow for a while, that
// affects all of them.
func compare(only string, channels, rounds int, during func(func())) error {
	all := slices.DeleteFunc(contestants(), func(c contestant) bool { return !strings.Contains(c.name, only) })
	if len(all) == 0 {
		return fmt.Errorf("no contestant's name contains %q", only)
	}
	results := make([][]result, len(all))
	for range rounds {
		for i, c := range all {
			runtime.GC()
			r, err := run(c, channels, during)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			results[i] = append(results[i], r)
		}
	}
	printTable(all, results, channels)
	return nil
}

func printTable(all []contestant, results [][]result, channels int) {
	var floor time.Duration
	for i, c := range all {
		if c.name == baseline {
			floor = medianOf(results[i], func(r result) time.Duration { return r.all })
		}
	}
	fmt.Printf("%s, %s/%s, %d cores; %d channels; medians of %d runs\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), channels, len(results[0]))
	fmt.Println("| | until every channel answers | times " + baseline + " | shortest to longest run | until half do | CPU | calls per channel | lookups per channel |")
	fmt.Println("| --- | ---: | ---: | --- | ---: | ---: | ---: | ---: |")
	for i, c := range all {
		untilAll := func(r result) time.Duration { return r.all }
		median := medianOf(results[i], untilAll)
		ratio := "-"
		if floor > 0 {
			ratio = fmt.Sprintf("%.2f", float64(median)/float64(floor))
		}
		slices.SortFunc(results[i], func(a, b result) int { return cmp.Compare(a.all, b.all) })
		fmt.Printf("| %s | %s | %s | %s–%s | %s | %s | %.1f | %.1f |\n", c.name, ms(median), ratio,
			ms(results[i][0].all), ms(results[i][len(results[i])-1].all),
			ms(medianOf(results[i], func(r result) time.Duration { return r.median })),
			ms(medianOf(results[i], func(r result) time.Duration { return r.cpu })),
			float64(medianOf(results[i], func(r result) int { return r.attempts }))/float64(channels),
			float64(medianOf(results[i], func(r result) int { return r.lookups }))/float64(channels))
	}
}

func ms(d time.Duration) string { return fmt.Sprintf("%.0f ms", float64(d)/1e6) }

func medianOf[T cmp.Ordered](all []result, of func(result) T) T {
	var sorted []T
	for _, r := range all {
		sorted = append(sorted, of(r))
	}
	slices.Sort(sorted)
	return sorted[len(sorted)/2]
}

// profiled returns a function that runs its argument while it writes a CPU profile and an execution
// trace. An empty file name turns either off. Each run has its own files, which "go tool pprof" can
// merge.
func profiled(profile, traced string) func(func()) {
	runs := 0
	create := func(name string) *os.File {
		f, err := os.Create(fmt.Sprintf("%s.%d", name, runs))
		exitOn(err)
		return f
	}
	return func(run func()) {
		runs++
		if profile != "" {
			exitOn(pprof.StartCPUProfile(create(profile)))
			defer pprof.StopCPUProfile()
		}
		if traced != "" {
			exitOn(trace.Start(create(traced)))
			defer trace.Stop()
		}
		run()
	}
}
