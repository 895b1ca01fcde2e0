package overload

import (
	"flag"
	"fmt"
	"math"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	_ "google.golang.org/grpc/balancer/leastrequest"
	_ "google.golang.org/grpc/balancer/weightedroundrobin"
	"google.golang.org/grpc/orca"
)

var tailFile = flag.String("tail", "", "record the latencies of endpoint policies in this file")

// load is what a backend reports of itself (gRFC A58): means that fade within five seconds.
type load struct {
	mu         sync.Mutex
	at         time.Time
	busy       int
	used, rate float64 // workers, and calls in a second
}

func (l *load) change(busy int) {
	const fades = 5
	l.mu.Lock()
	defer l.mu.Unlock()
	kept := math.Exp(-time.Since(l.at).Seconds() / fades)
	l.at = time.Now()
	l.used = kept*l.used + (1-kept)*float64(l.busy)
	l.rate *= kept
	if l.busy += busy; busy < 0 {
		l.rate += 1. / fades
	}
}

func (l *load) report(to orca.CallMetricsRecorder, workers int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	to.SetApplicationUtilization(l.used / float64(workers))
	to.SetQPS(l.rate)
}

// tailWorld has two priorities of ten backends. The calls of one of the ten take ten times as long,
// those of the others differ by up to 20 %. The load is 60 % of what a priority can do.
func tailWorld(deadline, from time.Duration, calls float64) World {
	var servers []Server
	for i := range time.Duration(9) {
		servers = append(servers, Server{Workers: 4, Service: 40*time.Millisecond + i*2500*time.Microsecond})
	}
	servers = append(servers, Server{Workers: 4, Service: 500 * time.Millisecond})
	w := World{Clients: 10, Deadlines: []time.Duration{deadline}, From: from, Priorities: [][]Server{servers, servers}}
	w.Load = 0.6 * w.capacity() / 2
	w.Length = from + seconds(calls/w.Load)
	return filled(w)
}

// alone returns a client of gRPC-Go with the servers of the first priority.
func alone(policy string) dialer {
	return func(w World, opts ...grpc.DialOption) (*grpc.ClientConn, error) {
		w.Priorities = w.Priorities[:1]
		return stock(policy)(w, opts...)
	}
}

// tail is how long the calls of a world took, in order. A failed call takes its whole deadline.
type tail struct {
	took                    []time.Duration
	failed, slow, elsewhere int // slow: answered by the slow backend
}

func playTail(t *testing.T, w World, seed uint64, dial dialer) (of tail) {
	play(t, w, seed, dial, func(err error, took time.Duration, server net.Addr) {
		switch {
		case err != nil:
			of.failed++
			took = w.Deadlines[0]
		case server.String() == addressOf(0, 9):
			of.slow++
		case !strings.HasPrefix(server.String(), "10.0.0."):
			of.elsewhere++
		}
		of.took = append(of.took, took)
	})
	slices.Sort(of.took)
	return of
}

func (t tail) percentile(p float64) time.Duration {
	return t.took[min(len(t.took)-1, int(p/100*float64(len(t.took))))]
}

// Ejection works below a policy of grpc-go too: without it, least_request calls the slow backend
// until its queue is as long as the deadline.
func TestLeastRequestTail(t *testing.T) {
	w := tailWorld(time.Second, 5*time.Second, 2000)
	us, grpc := playTail(t, w, 1, through("least_request_experimental")), playTail(t, w, 1, alone("least_request_experimental"))
	t.Logf("p99 %v through us and %v alone; %d and %d of %d fail", us.percentile(99), grpc.percentile(99), us.failed, grpc.failed, len(us.took))
	if us.percentile(99) > grpc.percentile(99)/2 || us.failed > grpc.failed/2 {
		t.Error("through us, least_request is not clearly better than alone")
	}
}

// TestTail records the latencies of endpoint policies, as make tail publishes them. Without -tail,
// it does nothing.
func TestTail(t *testing.T) {
	if *tailFile == "" {
		return
	}
	percentiles := []float64{50, 75, 90, 95, 98, 99, 99.5, 99.8, 99.9}
	var b strings.Builder
	b.WriteString("deadline,policy,seed,calls,failed,slow,elsewhere")
	for _, p := range percentiles {
		fmt.Fprintf(&b, ",p%v", p)
	}
	b.WriteString("\n")
	for _, deadline := range []time.Duration{time.Second, 3 * time.Second} {
		for _, row := range []struct {
			name string
			dial dialer
		}{
			{"weights", through("weighted_round_robin")},
			{"least_request", through("least_request_experimental")},
			{"load reports", through("weighted_round_robin{}")},
			{"least_request alone", alone("least_request_experimental")},
			{"round_robin alone", alone("round_robin")},
		} {
			for seed := range uint64(3) {
				of := playTail(t, tailWorld(deadline, 30*time.Second, 102_000), seed+1, row.dial)
				fmt.Fprintf(&b, "%v,%s,%d,%d,%d,%d,%d", deadline, row.name, seed+1, len(of.took), of.failed, of.slow, of.elsewhere)
				for _, p := range percentiles {
					fmt.Fprintf(&b, ",%.1f", of.percentile(p).Seconds()*1000)
				}
				b.WriteString("\n")
			}
		}
	}
	if err := os.WriteFile(*tailFile, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
