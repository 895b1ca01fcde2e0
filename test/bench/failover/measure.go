package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"
)

type result struct {
	all, median time.Duration
	cpu         time.Duration
	attempts    int
	lookups     int
}

const runTimeout = 2 * time.Minute

// run opens channels, waits for their connections, and kills the first group of backends. It then
// measures how long it takes until the second group has answered a call on each channel.
func run(c contestant, channels int, during func(func())) (result, error) {
	ctx, cancel := context.WithTimeout(context.Background(), runTimeout)
	defer cancel()
	l, err := startLab()
	if err != nil {
		return result{}, err
	}
	defer l.close()
	conns, err := connect(ctx, c, l, channels)
	for _, cc := range conns {
		defer cc.Close() //nolint:errcheck // the run is over
	}
	if err != nil {
		return result{}, err
	}
	if _, err := answers(ctx, conns, ""); err != nil {
		return result{}, err
	}
	// We wait until grpc-go allows another DNS lookup, since it would in a program that has been
	// running for a while.
	select {
	case <-time.After(2 * dnsPause):
	case <-ctx.Done():
	}
	var r result
	during(func() {
		start, busy, asked := time.Now(), cpuTime(), l.lookups()
		l.first.kill()
		var after []answer
		if after, err = answers(ctx, conns, l.second.name); err == nil {
			r = summary(start, after)
			r.cpu, r.lookups = cpuTime()-busy, l.lookups()-asked
		}
	})
	return r, err
}

// connect opens channels in batches, so that the name server doesn't lose any queries.
func connect(ctx context.Context, c contestant, l *lab, channels int) ([]*grpc.ClientConn, error) {
	const batch = 50
	open := newCounter()
	var conns []*grpc.ClientConn
	for len(conns) < channels {
		for range min(batch, channels-len(conns)) {
			cc, err := c.dial(l, plaintext, grpc.WithStatsHandler(open))
			if err != nil {
				return conns, err
			}
			conns = append(conns, cc)
			cc.Connect()
		}
		if err := open.await(ctx, len(conns)*c.connections); err != nil {
			return conns, err
		}
	}
	return conns, nil
}

func summary(start time.Time, all []answer) result {
	slices.SortFunc(all, func(a, b answer) int { return a.at.Compare(b.at) })
	r := result{all: all[len(all)-1].at.Sub(start), median: all[len(all)/2].at.Sub(start)}
	for _, a := range all {
		r.attempts += a.attempts
	}
	return r
}

type answer struct {
	at       time.Time
	attempts int
}

// answers calls on all channels concurrently. It stops calling on a channel when the named group of
// backends has answered, or any group if name is "".
func answers(ctx context.Context, conns []*grpc.ClientConn, name string) ([]answer, error) {
	all := make([]answer, len(conns))
	var wg sync.WaitGroup
	for i, cc := range conns {
		wg.Go(func() {
			for ctx.Err() == nil {
				all[i].attempts++
				if group, err := callName(ctx, cc); err == nil && (name == "" || group == name) {
					all[i].at = time.Now()
					return
				}
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("some of %d channels do not answer", len(conns))
	}
	return all, nil
}

type counter struct {
	mu      sync.Mutex
	open    int
	changed chan struct{}
}

func newCounter() *counter { return &counter{changed: make(chan struct{})} }

func (c *counter) await(ctx context.Context, n int) error {
	for {
		c.mu.Lock()
		open, changed := c.open, c.changed
		c.mu.Unlock()
		if open == n {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%d connections are open, want %d", open, n)
		}
	}
}

func (c *counter) HandleConn(_ context.Context, s stats.ConnStats) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch s.(type) {
	case *stats.ConnBegin:
		c.open++
	case *stats.ConnEnd:
		c.open--
	}
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *counter) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

func (c *counter) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

func (c *counter) HandleRPC(context.Context, stats.RPCStats) {}
