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

	"github.com/understudy-lb/understudy/internal/printable"
)

const mostInFlight = 1000

// tally calls grpc.health.v1.Health/Check at a fixed rate and counts the results. It is safe for
// concurrent use.
type tally struct {
	rate float64

	mu   sync.Mutex
	now  Tally
	last string
	at   time.Time
}

// Tally counts the results of calls.
type Tally struct {
	Sent     int `json:"sent"`
	Answered int `json:"answered"`
	Failed   int `json:"failed"`
	InFlight int `json:"in_flight"`
	// Held counts calls that were not sent because too many were in flight.
	Held      int    `json:"held,omitempty"`
	LastError string `json:"last_error,omitempty"`
}

func (t *tally) run(ctx context.Context, cc *grpc.ClientConn, service string, timeout time.Duration) {
	var calls sync.WaitGroup
	defer calls.Wait()
	next := time.NewTicker(time.Duration(float64(time.Second) / t.rate))
	defer next.Stop()
	client := healthpb.NewHealthClient(cc)
	for {
		select {
		case <-next.C:
			if t.begin() {
				calls.Go(func() { t.call(ctx, client, service, timeout) })
			}
		case <-ctx.Done():
			return
		}
	}
}

func (t *tally) begin() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.now.InFlight >= mostInFlight {
		t.now.Held++
		return false
	}
	t.now.Sent++
	t.now.InFlight++
	return true
}

func (t *tally) call(ctx context.Context, client healthpb.HealthClient, service string, timeout time.Duration) {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	began := time.Now()
	var from peer.Peer
	answer, err := client.Check(limited, &healthpb.HealthCheckRequest{Service: service}, grpc.Peer(&from))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.now.InFlight--
	switch {
	case err == nil:
		t.now.Answered++
		t.last = fmt.Sprintf("%s by %v in %s", answer.GetStatus(), from.Addr, printable.Duration(time.Since(began)))
	case ctx.Err() != nil: // the watch has ended, which canceled the call
		t.now.Sent--
	default:
		t.now.Failed++
		t.at = time.Now()
		t.now.LastError = printable.Line(fmt.Sprintf("%s: %s", printable.Code(status.Code(err)), status.Convert(err).Message()), longestError)
	}
}

func (t *tally) get() Tally {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.now
}

// lines describes the results in lines of text. t may be nil.
func (t *tally) lines(columns int, now time.Time) (lines []line) {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	text := fmt.Sprintf("Calls of Health/Check, %g/s: %d answered, %d failed, %d in flight", t.rate, t.now.Answered, t.now.Failed, t.now.InFlight)
	if t.now.Held > 0 {
		text += fmt.Sprintf(", %d not sent as too many wait", t.now.Held)
	}
	if t.last != "" {
		text += "; last answer: " + t.last
	}
	lines = append(lines, nil)
	for _, l := range wrap(text, columns, 2, "  ") {
		lines = append(lines, say(plain, l))
	}
	if t.now.LastError == "" {
		return lines
	}
	for _, l := range wrap(fmt.Sprintf("  failed %s ago with %s", printable.Duration(now.Sub(t.at)), t.now.LastError), columns, 2, "    ") {
		lines = append(lines, say(bad, l))
	}
	return lines
}
