package e2e

import (
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

// While the management server fails, wait-for-ready calls wait, and other calls fail with
// UNAVAILABLE.
func TestCallsWaitForManagementServer(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]adstest.Script{
		"down":              nil,
		"PERMISSION_DENIED": func(*adstest.Stream) error { return status.Error(codes.PermissionDenied, "go away") },
		"INTERNAL":          func(*adstest.Stream) error { return status.Error(codes.Internal, "no luck") },
		"UNIMPLEMENTED":     func(*adstest.Stream) error { return status.Error(codes.Unimplemented, "no such method") },
		"closed at once":    func(*adstest.Stream) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			backend := startServer(t, "backend", nil)
			repaired := make(chan struct{})
			script := func(s *adstest.Stream) error {
				select {
				case <-repaired:
				default:
					return broken(s)
				}
				if err := s.Respond("1", "n", adstest.Cluster("c", backend.address)); err != nil {
					return err
				}
				return s.Drain()
			}
			address := closedAddress(t)
			if broken != nil {
				startManagerOn(t, address, script)
			}
			cc := newClient(t, "eds://"+address+"/c")
			waiting := make(chan error, 1)
			go func() {
				_, err := who(timeoutContext(t, time.Minute), cc, grpc.WaitForReady(true))
				waiting <- err
			}()
			if _, err := who(timeoutContext(t, time.Minute), cc); status.Code(err) != codes.Unavailable {
				t.Errorf("a call that is not wait-for-ready ends with %v, want UNAVAILABLE", err)
			}
			if _, err := who(timeoutContext(t, 100*time.Millisecond), cc, grpc.WaitForReady(true)); status.Code(err) != codes.DeadlineExceeded {
				t.Errorf("a wait-for-ready call ends with %v, want DEADLINE_EXCEEDED", err)
			}
			close(repaired)
			if broken == nil {
				startManagerOn(t, address, script)
			}
			if err := <-waiting; err != nil {
				t.Errorf("a wait-for-ready call ends with %v, want an answer", err)
			}
		})
	}
}
