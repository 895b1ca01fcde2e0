package failover_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/understudy-lb/understudy/discovery/failover"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

func TestFailoverAndFailback(t *testing.T) {
	t.Parallel()
	us, eu := startServer(t, "us", insecure.NewCredentials()), startServer(t, "eu", insecure.NewCredentials())
	conn := dial(t, fmt.Sprintf("failover:///passthrough:///%s,%s", us.address, eu.address), plaintext)
	await(t, conn, "us as "+us.address)
	us.server.Stop()
	await(t, conn, "eu as "+eu.address)
	us.start(t)
	await(t, conn, "us as "+us.address)
}

func TestDuplicateEntry(t *testing.T) {
	us := startServer(t, "us", insecure.NewCredentials())
	conn := dial(t, fmt.Sprintf("failover:///passthrough:///%s,passthrough:///%s", us.address, us.address), plaintext)
	await(t, conn, "us as "+us.address)
	us.server.Stop()
	us.start(t)
	await(t, conn, "us as "+us.address)
}

func TestIdleChannel(t *testing.T) {
	t.Parallel()
	us := startServer(t, "us", insecure.NewCredentials())
	conn := dial(t, fmt.Sprintf("failover:///%s,passthrough:///192.0.2.1:1", us.address), plaintext, grpc.WithIdleTimeout(50*time.Millisecond))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for range 3 {
		await(t, conn, "us as "+us.address)
		for state := conn.GetState(); state != connectivity.Idle; state = conn.GetState() {
			if !conn.WaitForStateChange(ctx, state) {
				t.Fatalf("the channel is %v, want idle", state)
			}
		}
	}
}

// grpc.NewClient does not parse targets. The first call must therefore report the mistakes in a
// target.
func TestFirstCallReportsInvalidTarget(t *testing.T) {
	for target, want := range map[string]string{
		"failover:///":                                        "failover: target has no entries",
		"failover:us:443":                                     "lacks the slashes after the scheme",
		"failover://us:443,eu:443":                            "with three slashes",
		"failover:///us:443,,eu:443":                          `failover: entry 2, "": it is empty`,
		"failover:///us:443,nosuch:///eu":                     `no resolver is registered for scheme "nosuch"`,
		"failover:///unix://host/a":                           `failover: "unix://host/a": invalid (non-empty) authority`,
		"failover:///" + strings.Repeat("a:1,", 9999) + "a:1": "failover: target has too many entries; want at most 64",
	} {
		_, err := call(t.Context(), dial(t, target, plaintext))
		if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), want) {
			t.Errorf("call to %.50s = %v, want Unavailable with %q", target, err, want)
		}
	}
	_, err := call(t.Context(), dial(t, "failover:///a:1", plaintext, grpc.WithDisableServiceConfig()))
	if err == nil || !strings.Contains(err.Error(), "which this channel disables (grpc.WithDisableServiceConfig") {
		t.Errorf("call with service configs disabled = %v", err)
	}
	invalidConfig := grpc.WithResolvers(given.Builder(failover.Scheme, given.Set("ServiceConfig", `{"methodConfig":[{"name":[{}],"timeout":"soon"}]}`)))
	_, err = call(t.Context(), dial(t, "failover:///a:1", plaintext, invalidConfig))
	if err == nil || !strings.Contains(err.Error(), "failover: service config: ") {
		t.Errorf("call with an invalid service config = %v", err)
	}
}

func TestCallErrorsWithoutAddresses(t *testing.T) {
	n := newFakeDNS()
	n.set("us", errors.New("no such host"))
	n.set("eu", errors.New("refused"))
	conn := dial(t, "failover:///lab:///us,lab:///eu", plaintext, grpc.WithResolvers(given.Builder(failover.Scheme, given.Sources(failover.WithResolvers(n)))))
	_, err := call(t.Context(), conn)
	want := "failover: no entry has an address: lab:///us: no such host; lab:///eu: refused"
	if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), want) {
		t.Errorf("call = %v, want Unavailable with %q", err, want)
	}

	eu := startServer(t, "eu", insecure.NewCredentials())
	done := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		_, err := call(ctx, conn, grpc.WaitForReady(true))
		done <- err
	}()
	n.set("eu", nil, eu.address)
	if err := <-done; err != nil {
		t.Errorf("a call that waits failed: %v", err)
	}

	n.set("eu", nil)
	await(t, conn, "eu as eu")
}

func TestCallErrorAfterLastEndpointFails(t *testing.T) {
	n := newFakeDNS()
	eu := startServer(t, "eu", insecure.NewCredentials())
	n.set("eu", nil, eu.address)
	n.set("us", errors.New("no such host"))
	conn := dial(t, "failover:///lab:///eu,lab:///us", plaintext, grpc.WithResolvers(given.Builder(failover.Scheme, given.Sources(failover.WithResolvers(n)))))
	await(t, conn, "eu as eu")
	eu.server.Stop()
	for _, want := range []string{"failover: lab:///us: no such host", "failover: lab:///us: timeout"} {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		for {
			_, err := call(ctx, conn)
			if status.Code(err) == codes.Unavailable && strings.Contains(err.Error(), want) {
				break
			}
			if ctx.Err() != nil {
				t.Fatalf("call = %v, want Unavailable with %q", err, want)
			}
		}
		n.set("us", errors.New("timeout"))
	}
}

func TestRetryPolicySurvivesUpdate(t *testing.T) {
	var calls atomic.Int64
	failEverySecond := func() bool { return calls.Add(1)%2 == 1 }
	first, second := startServer(t, "first", insecure.NewCredentials()), startServer(t, "second", insecure.NewCredentials())
	first.failCall, second.failCall = failEverySecond, failEverySecond
	n := newFakeDNS()
	n.set("us", nil, first.address)
	builder := given.Builder(failover.Scheme, given.Sources(failover.WithResolvers(n)), given.Set("ServiceConfig", `{"methodConfig":[{"name":[{}],
		"retryPolicy":{"maxAttempts":2,"initialBackoff":"0.01s","maxBackoff":"0.01s","backoffMultiplier":1,"retryableStatusCodes":["UNAVAILABLE"]}}]}`))
	conn := dial(t, "failover:///lab:///us,lab:///eu", plaintext, grpc.WithResolvers(builder))
	for range 4 {
		if got, err := call(t.Context(), conn); err != nil || got != "first as us" {
			t.Fatalf("before the update: %q, %v", got, err)
		}
	}
	n.set("us", nil, second.address)
	await(t, conn, "second as us")
	for range 4 {
		if got, err := call(t.Context(), conn); err != nil || got != "second as us" {
			t.Fatalf("after the update: %q, %v", got, err)
		}
	}
}
