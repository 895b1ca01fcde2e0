// Peers measures how long clients take to fail over when a tier of backends fails, and how many
// calls they lose. It compares Understudy with grpc-go's pick_first and round_robin, and with the
// multi-endpoint features of github.com/GoogleCloudPlatform/grpc-gcp-go. Two tiers of two backends
// listen on real sockets, each tier in its own process. Every client makes 200 calls a second with
// deadlines of 1 s, and uses keepalive.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"
)

func main() {
	if len(os.Args) > 2 && os.Args[1] == backendVerb {
		exitOn(serveTier(os.Args[2]))
		return
	}
	only := flag.String("only", "", "only run clients whose names contain this text")
	fault := flag.String("fault", "", "only run faults whose names contain this text")
	alone := flag.Bool("alone", false, "run one client at a time instead of all in parallel (about twenty minutes)")
	flag.Parse()
	exitOn(compare(*only, *fault, *alone))
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

// compare runs all clients through all faults, and prints the table.
func compare(only, faulty string, alone bool) error {
	var all []contestant
	for _, c := range contestants() {
		if strings.Contains(c.name, only) {
			all = append(all, c)
		}
	}
	var chosen []fault
	for _, f := range faults {
		if strings.Contains(f.name, faulty) {
			chosen = append(chosen, f)
		}
	}
	results := make([][]result, len(all))
	for _, f := range chosen {
		fmt.Fprintln(os.Stderr, f.name)
		column, err := through(f, all, alone)
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		for i := range all {
			results[i] = append(results[i], column[i])
		}
	}
	printTable(all, chosen, results)
	return nil
}

// through runs the clients through one fault. Unless alone is set, all clients run at the same
// time.
func through(f fault, all []contestant, alone bool) ([]result, error) {
	results, errs := make([]result, len(all)), make([]error, len(all))
	var running sync.WaitGroup
	for i, c := range all {
		running.Go(func() { results[i], errs[i] = run(c, f) })
		if alone {
			running.Wait()
		}
	}
	running.Wait()
	for i, err := range errs {
		if err != nil {
			return nil, fmt.Errorf("%s: %w", all[i].name, err)
		}
	}
	return results, nil
}

func printTable(all []contestant, faults []fault, results [][]result) {
	fmt.Printf("%s, %s/%s, %d cores; 200 calls a second, %v from the fault\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), observed)
	head, line := "| |", "| --- |"
	for _, f := range faults {
		head, line = head+" "+f.name+" |", line+" ---: |"
	}
	fmt.Println(head)
	fmt.Println(line)
	for i, c := range all {
		row := "| " + c.name + " |"
		for _, r := range results[i] {
			row += " " + r.String() + " |"
		}
		fmt.Println(row)
	}
}

type result struct {
	next  time.Duration // time from the fault to the first answer of the second tier; negative if there was none
	lost  int           // number of calls that failed
	calls int
}

func (r result) String() string {
	lost := fmt.Sprintf("%d failed", r.lost)
	if r.lost == r.calls {
		lost = "all failed"
	}
	switch {
	case r.next < 0:
		return "never, " + lost
	case r.next < time.Second:
		return fmt.Sprintf("%.0f ms, %s", float64(r.next)/1e6, lost)
	}
	return fmt.Sprintf("%.1f s, %s", r.next.Seconds(), lost)
}
