package watch

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/understudy-lb/understudy/internal/text/printable"
)

const maxInFlight = 1000

// prober calls grpc.health.v1.Health/Check at a fixed rate and counts the results. It is safe for
// concurrent use.
type prober struct {
	rate float64

	mu            sync.Mutex
	counts        CallCounts
	lastAnswer    string
	lastErrorTime time.Time
}

// CallCounts counts the results of calls.
type CallCounts struct {
	Sent     int `json:"sent"`
	Answered int `json:"answered"`
	Failed   int `json:"failed"`
	InFlight int `json:"in_flight"`
	// NotSent counts calls that were not sent because too many were in flight.
	NotSent   int    `json:"held,omitempty"`
	LastError string `json:"last_error,omitempty"`
}

func (t *prober) run(ctx context.Context, cc *grpc.ClientConn, service string, timeout time.Duration) {
	var calls sync.WaitGroup
	defer calls.Wait()
	ticker := time.NewTicker(time.Duration(float64(time.Second) / t.rate))
	defer ticker.Stop()
	client := healthpb.NewHealthClient(cc)
	for {
		select {
		case <-ticker.C:
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
	start := time.Now()
	var server peer.Peer
	response, err := client.Check(callCtx, &healthpb.HealthCheckRequest{Service: service}, grpc.Peer(&server))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts.InFlight--
	switch {
	case err == nil:
		t.counts.Answered++
		t.lastAnswer = fmt.Sprintf("%s by %v in %s", response.GetStatus(), server.Addr, printable.Duration(time.Since(start)))
	case ctx.Err() != nil: // the watch has ended, which canceled the call
		t.counts.Sent--
	default:
		t.counts.Failed++
		t.lastErrorTime = time.Now()
		t.counts.LastError = printable.Line(fmt.Sprintf("%s: %s", printable.Code(status.Code(err)), status.Convert(err).Message()), maxTextBytes)
	}
}

func (t *prober) snapshot() CallCounts {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts
}

// render returns the results as lines of text. It returns nil if t is nil.
func (t *prober) render(columns int, now time.Time) (lines []line) {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	text := fmt.Sprintf("Calls of Health/Check, %g/s: %d answered, %d failed, %d in flight", t.rate, t.counts.Answered, t.counts.Failed, t.counts.InFlight)
	if t.counts.NotSent > 0 {
		text += fmt.Sprintf(", %d not sent because too many are in flight", t.counts.NotSent)
	}
	if t.lastAnswer != "" {
		text += "; last answer: " + t.lastAnswer
	}
	lines = append(lines, nil)
	for _, l := range wrap(text, columns, 2, "  ") {
		lines = append(lines, newLine(tonePlain, l))
	}
	if t.counts.LastError == "" {
		return lines
	}
	for _, l := range wrap(fmt.Sprintf("  failed %s ago with %s", printable.Duration(now.Sub(t.lastErrorTime)), t.counts.LastError), columns, 2, "    ") {
		lines = append(lines, newLine(toneBad, l))
	}
	return lines
}
