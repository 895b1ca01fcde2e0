// Command peers measures how well clients cope when a priority of backends fails. It compares
// Understudy with policies of grpc-go and with the multi-endpoint features of
// github.com/GoogleCloudPlatform/grpc-gcp-go. For each client, it measures the time without
// answers, the number of lost calls, and how many priority changes and connections there are. It
// writes docs/league.md.
//
// It needs Linux, where all addresses in 127.0.0.0/8 are loopback addresses.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/understudy-lb/understudy/internal/testing/dnstest"
)

const resultsFile, docs = "league.csv", "../../docs"

func main() {
	runs := flag.Int("runs", 9, "measure each fault this many times")
	atOnce := flag.Int("at-once", 5, "run this many faults side by side")
	fault := flag.String("fault", "", "only measure faults whose names contain this text")
	flag.DurationVar(&maxControlCall, "calm", maxControlCall, "throw results away if a call without a fault took longer beside them")
	kept := flag.Bool("continue", false, "keep the results of "+resultsFile+", and measure only what is missing")
	flag.Parse()
	debug.SetGCPercent(400) // garbage collections delay calls, so have fewer of them
	if err := compare(*runs, *atOnce, *fault, *kept); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

type job struct {
	fault fault
	run   int
}

// compare only does the runs that the results don't have yet.
func compare(runs, atOnce int, chosen string, kept bool) error {
	l := &league{dns: dnstest.Start()}
	defer l.dns.Stop()
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, l.dns.Address())
	}}
	if kept {
		var err error
		if l.records, err = load(resultsFile); err != nil {
			return err
		}
	}
	jobs := make(chan job)
	var workers sync.WaitGroup
	for range atOnce {
		workers.Go(func() {
			for j := range jobs {
				l.measure(j)
			}
		})
	}
	for n := 1; n <= runs; n++ {
		for _, f := range faults {
			if strings.Contains(f.name, chosen) && !l.has(f, n) {
				jobs <- job{f, n}
			}
		}
	}
	close(jobs)
	workers.Wait()
	return errors.Join(append(l.errs, write(docs, l.records))...)
}

type league struct {
	dns *dnstest.Server

	mu      sync.Mutex
	records []record
	errs    []error
}

func (l *league) has(f fault, run int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.records, func(r record) bool { return r.fault == f.name && r.run == run })
}

const maxAttempts = 5

// measure repeats the job if a client couldn't run, or if the control shows that the machine was
// too busy.
func (l *league) measure(j job) {
	var err error
	for range maxAttempts {
		began := time.Now()
		var records []record
		if records, err = runAll(l.dns, j); err == nil {
			l.addRecords(records)
			fmt.Fprintf(os.Stderr, "%s, run %d: %.0f s\n", j.fault.name, j.run, time.Since(began).Seconds())
			return
		}
		fmt.Fprintf(os.Stderr, "%s, run %d: again: %v\n", j.fault.name, j.run, err)
		l.addRecords([]record{{fault: j.fault.name, contestant: control.name}})
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.errs = append(l.errs, fmt.Errorf("%s, run %d, failed %d times: %w", j.fault.name, j.run, maxAttempts, err))
}

func (l *league) addRecords(records []record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records = append(l.records, records...)
	if err := save(resultsFile, l.records); err != nil {
		l.errs = append(l.errs, err)
	}
}

// runAll lets all contestants, and the control, face the fault at the same time.
func runAll(dns *dnstest.Server, j job) ([]record, error) {
	all := append(slices.Clone(contestants), control)
	records, errs := make([]record, len(all)), make([]error, len(all))
	var running sync.WaitGroup
	for i, c := range all {
		running.Go(func() {
			f := j.fault
			if c.name == control.name {
				f.strike, f.then = noFault, nil
			}
			r, err := run(dns, c, f)
			records[i] = record{j.fault.name, c.name, j.run, r}
			if err != nil {
				errs[i] = fmt.Errorf("%s: %w", c.name, err)
			}
		})
	}
	running.Wait()
	if r := records[len(all)-1]; errs[len(all)-1] == nil && !isUndisturbed(r.result) {
		errs = append(errs, fmt.Errorf("without a fault %d calls were lost, and the longest took %v", r.lost, r.longest))
	}
	return records, firstError(errs)
}

func firstError(errs []error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("%w (and %d more errors)", errs[0], len(errs)-1)
}

// maxControlCall makes a run invalid if any call of the control is slower.
var maxControlCall = 100 * time.Millisecond

func isUndisturbed(r result) bool {
	return r.lost == 0 && r.longest <= maxControlCall && r.calls >= int(observationTime/callInterval)*9/10
}
