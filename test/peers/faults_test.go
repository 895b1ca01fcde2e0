//go:build linux

package main

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthgrpc "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/understudy-lb/understudy/internal/testing/dnstest"
)

// short is the timeout of calls that must end with DEADLINE_EXCEEDED.
const short = 300 * time.Millisecond

const longTimeout = 30 * time.Second

// expectation holds the expected status codes of calls to the first priority during a fault: of
// calls on a connection that existed before the fault, and on a fresh one.
type expectation struct {
	connected codes.Code
	fresh     codes.Code
}

var lost = expectation{codes.DeadlineExceeded, codes.DeadlineExceeded}

var expected = map[string]expectation{
	"killed":           {codes.Unavailable, codes.Unavailable},
	"reset":            {codes.OK, codes.OK},
	"GOAWAY":           {codes.Unavailable, codes.Unavailable},
	"NOT_SERVING":      {codes.OK, codes.OK},
	"UNAVAILABLE":      {codes.Unavailable, codes.Unavailable},
	"INTERNAL":         {codes.Internal, codes.Internal},
	"hang":             lost,
	"half hang":        lost,
	"2 s slower":       lost,
	"full":             {codes.OK, codes.OK},
	"full, one killed": {codes.OK, codes.OK},
	"no SYN answered":  lost,
	"packets lost":     lost,
	"lost one way":     lost,
	"TLS broken":       {codes.Unavailable, codes.Unavailable},
	"DNS changed":      {codes.Unavailable, codes.Unavailable},
	"restart":          {codes.Unavailable, codes.Unavailable},
	"flapping":         {codes.Unavailable, codes.Unavailable},
}

func TestFaults(t *testing.T) {
	dns := dnstest.Start()
	defer dns.Stop()
	for _, f := range faults {
		want, known := expected[f.name]
		if !known { // tested by TestCrashLoops
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			w := startWorld(t, dns, f.secure)
			connected, second := dial(t, w, w.first[0]), dial(t, w, w.second[0])
			expect(t, connected, longTimeout, codes.OK)
			if err := f.strike(w); err != nil {
				t.Fatal(err)
			}
			// Calls may fail with another code until gRPC reads from the closed connection.
			for limit := time.Now().Add(longTimeout); codeOf(connected, timeoutFor(want.connected)) != want.connected && time.Now().Before(limit); {
			}
			expect(t, connected, timeoutFor(want.connected), want.connected)
			expect(t, dial(t, w, w.first[0]), timeoutFor(want.fresh), want.fresh)
			expect(t, second, longTimeout, codes.OK)
		})
	}
}

func timeoutFor(code codes.Code) time.Duration {
	if code == codes.DeadlineExceeded {
		return short
	}
	return longTimeout
}

func TestNotServing(t *testing.T) {
	dns := dnstest.Start()
	defer dns.Stop()
	w := startWorld(t, dns, false)
	client := healthgrpc.NewHealthClient(dial(t, w, w.first[0]))
	for _, want := range []healthgrpc.HealthCheckResponse_ServingStatus{healthgrpc.HealthCheckResponse_SERVING, healthgrpc.HealthCheckResponse_NOT_SERVING} {
		if got, err := client.Check(t.Context(), &healthgrpc.HealthCheckRequest{}); err != nil || got.Status != want {
			t.Errorf("health is %v, %v; want %v", got.GetStatus(), err, want)
		}
		w.first[0].setNotServing()
	}
}

// A full backend answers no more calls than it can, in order. If there are two, the other one is
// killed by that fault.
func TestFull(t *testing.T) {
	dns := dnstest.Start()
	defer dns.Stop()
	w := startWorld(t, dns, false)
	full, other := dial(t, w, w.first[0]), dial(t, w, w.first[1])
	expect(t, full, longTimeout, codes.OK)
	expect(t, other, longTimeout, codes.OK)
	if err := fillAndKillOne(w); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	var all sync.WaitGroup
	var answered, expired atomic.Int32
	for range 20 {
		all.Go(func() {
			switch codeOf(full, 500*time.Millisecond) {
			case codes.OK:
				answered.Add(1)
			case codes.DeadlineExceeded:
				expired.Add(1)
			}
		})
	}
	all.Wait()
	if n := answered.Load(); n < 1 || n > 8 || n+expired.Load() != 20 {
		t.Errorf("of 20 calls, %d were answered in %v and %d expired; want at most 8, and the others", n, time.Since(began), expired.Load())
	}
	for limit := time.Now().Add(longTimeout); codeOf(other, longTimeout) != codes.Unavailable && time.Now().Before(limit); {
	}
	expect(t, other, longTimeout, codes.Unavailable)
}

// If one backend of the first priority hangs, the other one must answer. If the DNS name of the
// first priority is changed to other backends, these must answer.
func TestOtherBackendsWork(t *testing.T) {
	dns := dnstest.Start()
	defer dns.Stop()
	w := startWorld(t, dns, false)
	if err := hangOne(w); err != nil {
		t.Fatal(err)
	}
	expect(t, dial(t, w, w.first[1]), longTimeout, codes.OK)
	if err := move(w); err != nil {
		t.Fatal(err)
	}
	expect(t, dial(t, w, w.spare[0]), longTimeout, codes.OK)
}

// If only the packets from a backend are lost, the backend must receive the call.
func TestPacketsLostInOneDirection(t *testing.T) {
	dns := dnstest.Start()
	defer dns.Stop()
	w := startWorld(t, dns, false)
	cc := dial(t, w, w.first[0])
	expect(t, cc, longTimeout, codes.OK)
	arrived := make(chan bool, 1)
	w.first[0].setBehavior(func(context.Context) error { arrived <- true; return nil })
	if err := dropAnswers(w); err != nil {
		t.Fatal(err)
	}
	expect(t, cc, short, codes.DeadlineExceeded)
	select {
	case <-arrived:
	case <-time.After(longTimeout):
		t.Error("the call has not arrived")
	}
}

func TestCrashLoops(t *testing.T) {
	dns := dnstest.Start()
	defer dns.Stop()
	w := startWorld(t, dns, false)
	if err := crash(time.Millisecond)(w); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		conn, err := w.connect(t.Context(), w.first[0].address)
		if err != nil {
			t.Fatal(err)
		}
		conn.SetReadDeadline(time.Now().Add(longTimeout))
		for buffer := make([]byte, 1<<10); err == nil; {
			_, err = conn.Read(buffer)
		}
		if timeout, is := err.(interface{ Timeout() bool }); is && timeout.Timeout() {
			t.Error("the connection did not end")
		}
		conn.Close()
	}
	if got := w.attempts.Load(); got != 2 {
		t.Errorf("%d attempts to connect were counted, want 2", got)
	}
}

// A restarted backend must answer again. A flapping backend must accept and refuse connections
// alternately.
func TestRestarts(t *testing.T) {
	dns := dnstest.Start()
	defer dns.Stop()
	w := startWorld(t, dns, false)
	kill(w)
	if err := restartAfter(0)(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	expect(t, dial(t, w, w.first[0]), longTimeout, codes.OK)

	kill(w)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- flap(10*time.Millisecond)(ctx, w) }()
	limit := time.Now().Add(longTimeout)
	for _, there := range []bool{false, true, false, true} {
		for {
			conn, err := w.connect(t.Context(), w.first[0].address)
			if err == nil {
				conn.Close()
			}
			if (err == nil) == there {
				break
			}
			if time.Now().After(limit) {
				t.Fatalf("a backend that flaps is not there (%v) in %v", there, longTimeout)
			}
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func startWorld(t *testing.T, dns *dnstest.Server, secure bool) *world {
	t.Helper()
	w, err := newWorld(dns, secure)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.close)
	return w
}

func dial(t *testing.T, w *world, b *backend) *grpc.ClientConn {
	t.Helper()
	options := append(w.options(), grpc.WithAuthority("first.league.test"))
	cc, err := grpc.NewClient("passthrough:///"+b.address, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cc.Close() })
	return cc
}

func codeOf(cc *grpc.ClientConn, timeout time.Duration) codes.Code {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	_, err := callName(ctx, cc)
	return status.Code(err)
}

func expect(t *testing.T, cc *grpc.ClientConn, within time.Duration, want codes.Code) {
	t.Helper()
	if got := codeOf(cc, within); got != want {
		t.Errorf("a call ended with %v, want %v", got, want)
	}
}

// The test adds calls in the order in which they end. Times are in milliseconds since the fault
// began.
func TestSummarize(t *testing.T) {
	began := time.Now()
	at := func(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }
	struck := at(2)
	var all []call
	add := func(from, to int, priority string, err error) {
		all = append(all, call{at(from), at(to), priority, err})
	}
	add(-20, -10, firstPriority, context.Canceled) // ended before the fault
	add(-5, 1, firstPriority, nil)                 // in flight when the fault began, and answered
	add(-4, 1, "", context.Canceled)               // in flight when the fault began, and lost
	add(10, 1010, "", context.DeadlineExceeded)
	for i := range answersOfChange {
		add(1000+10*i, 1020+10*i, secondPriority, nil)
	}
	add(1100, 1110, firstPriority, nil) // tests whether the first priority has recovered
	for i := range answersOfChange {
		add(1200+10*i, 1220+10*i, secondPriority, nil)
	}
	for i := range answersOfChange {
		add(1300+10*i, 1320+10*i, firstPriority, nil)
	}
	want := result{first: 1018 * time.Millisecond, lost: 2, calls: len(all) - 1, longest: time.Second, changes: 2}
	if got := summarize(all, began, struck); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := summarize(slices.Clone(all[3:4]), began, struck); got.first != never {
		t.Errorf("the first answer came after %v, want never", got.first)
	}
}
