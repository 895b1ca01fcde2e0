package watch

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/understudy-lb/understudy/internal/text/printable"
)

const maxInFlight = 1000

type prober struct {
	rate float64

	mu     sync.Mutex
	counts CallCounts
}

type CallCounts struct {
	Sent     int `json:"sent"`
	Answered int `json:"answered"`
	Failed   int `json:"failed"`
	InFlight int `json:"in_flight"`
	// NotSent counts calls that we didn't make because too many were in flight.
	NotSent   int    `json:"held,omitempty"`
	LastError string `json:"last_error,omitempty"`
}

func (t *prober) run(ctx context.Context, cc *grpc.ClientConn, service string, timeout time.Duration) {
	var calls sync.WaitGroup
	defer calls.Wait()
	client := healthpb.NewHealthClient(cc)
	for ticks := time.Tick(time.Duration(float64(time.Second) / t.rate)); ; {
		select {
		case <-ticks:
			if t.begin() {
				calls.Go(func() { t.call(ctx, client, service, timeout) })
			}
		case <-ctx.Done():
			return
		}
	}
}

func (t *prober) begin() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts.InFlight >= maxInFlight {
		t.counts.NotSent++
		return false
	}
	t.counts.Sent++
	t.counts.InFlight++
	return true
}

func (t *prober) call(ctx context.Context, client healthpb.HealthClient, service string, timeout time.Duration) {
	callCtx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	_, err := client.Check(callCtx, &healthpb.HealthCheckRequest{Service: service})
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts.InFlight--
	switch {
	case err == nil:
		t.counts.Answered++
	case ctx.Err() != nil || endsNow(ctx): // canceled because the watch is over
		t.counts.Sent--
	default:
		t.counts.Failed++
		t.counts.LastError = printable.Code(status.Code(err)) + ": " + status.Convert(err).Message()
	}
}

func endsNow(ctx context.Context) bool {
	// The server may reach the deadline before we do.
	end, ok := ctx.Deadline()
	return ok && time.Until(end) < 50*time.Millisecond
}

func (c CallCounts) describe() string {
	return fmt.Sprintf("of %d calls, %d were answered and %d failed", c.Sent, c.Answered, c.Failed)
}
