package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
)

const (
	observed = 30 * time.Second     // how long calls are counted after the fault
	pause    = 5 * time.Millisecond // pause between calls
	deadline = time.Second          // deadline of each call
	warm     = 400                  // number of consecutive successful calls before the fault
	patience = time.Minute          // limit for the time that these calls take
)

// fault describes how the first tier fails.
type fault struct {
	name string
	// befall causes the fault. If fromStart is set, it is called before the client is created.
	befall    func(*tier) error
	fromStart bool
	relayed   bool // whether the tiers are behind relays
}

var faults = []fault{
	{name: "killed", befall: (*tier).kill},
	{name: "refused from the start", befall: (*tier).kill, fromStart: true},
	{name: "hung", befall: (*tier).hang},
	{name: "packets dropped", befall: (*tier).cut, relayed: true},
	{name: "answers INTERNAL", befall: (*tier).fail},
}

// run measures a client during a fault.
func run(c contestant, f fault) (result, error) {
	l, err := startLab(f.relayed)
	if err != nil {
		return result{}, err
	}
	defer l.close()
	if f.fromStart {
		if err := f.befall(l.first); err != nil {
			return result{}, err
		}
	}
	cc, closeIt, err := c.dial(l)
	if err != nil {
		return result{}, err
	}
	defer closeIt()
	if f.fromStart {
		return observe(cc, time.Now()), nil
	}
	if err := warmUp(cc); err != nil {
		return result{}, err
	}
	at := time.Now()
	if err := f.befall(l.first); err != nil {
		return result{}, err
	}
	return observe(cc, at), nil
}

// warmUp makes calls until warm calls in a row have succeeded and some of them went to the first
// tier.
func warmUp(cc grpc.ClientConnInterface) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	first := false
	for row := 0; row < warm || !first; row++ {
		name, err := callName(ctx, cc, true)
		if ctx.Err() != nil {
			return fmt.Errorf("no answers before the fault: %v", err)
		}
		if err != nil {
			row = 0
		}
		first = first || name == firstName
	}
	return nil
}

// observe makes calls and counts their results. at is the time of the fault.
func observe(cc grpc.ClientConnInterface, at time.Time) result {
	r := result{next: -1}
	var mu sync.Mutex
	var running sync.WaitGroup
	ticks := time.NewTicker(pause)
	defer ticks.Stop()
	for time.Since(at) < observed {
		running.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), deadline)
			defer cancel()
			name, err := callName(ctx, cc, false)
			took := time.Since(at)
			mu.Lock()
			defer mu.Unlock()
			r.calls++
			if err != nil {
				r.lost++
			} else if name != firstName && (r.next < 0 || took < r.next) {
				r.next = took
			}
		})
		<-ticks.C
	}
	running.Wait()
	return r
}
