package e2e

import (
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// If a backend answers all calls with UNAVAILABLE, retry throttling allows 50 retries at most.
func TestRetriesAreThrottled(t *testing.T) {
	t.Parallel()
	e := readExample(t)
	first := startServer(t, "first", nil)
	cc := e.dial(t, insecure.NewCredentials(), []string{first.address})
	awaitName(timeoutContext(t, eventTimeout), t, cc, "first")
	const allCalls, calls = 1 << 30, 5000
	first.err = status.Error(codes.Unavailable, "overloaded")
	first.failures.Store(allCalls)
	var workers sync.WaitGroup
	for range calls {
		workers.Go(func() {
			if _, err := who(timeoutContext(t, eventTimeout), cc); status.Code(err) != codes.Unavailable {
				t.Errorf("error = %v, want the backend's", err)
			}
		})
	}
	workers.Wait()
	attempts := float64(allCalls-first.failures.Load()) / calls
	t.Logf("%.2f attempts per call", attempts)
	if attempts > 1.01 {
		t.Errorf("%.3f attempts per call, want at most 1.01", attempts)
	}
}
