package adsclient

import (
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

// A server ends each stream with RESOURCE_EXHAUSTED. The client must wait longer after each
// attempt. After a stream with a response, the backoff must start again at one second.
func TestBackoffResetsAfterResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var began []time.Time
		const answered = 12
		m := startManager(t, func(s *adstest.Stream) error {
			began = append(began, time.Now())
			if s.Number == answered {
				if err := s.Respond("1", "n", adstest.Cluster("a", "10.0.0.1:1")); err != nil {
					return err
				}
				if _, err := s.Recv(); err != nil {
					return err
				}
			}
			return status.Error(codes.ResourceExhausted, "too many clients")
		})
		a, cancel := m.watch("a")
		expect(t, "a", a.take(), "too many clients")
		for m.server.Streams() < answered+2 {
			sleep(time.Second)
		}
		cancel()
		synctest.Wait()
		want := 1.0
		for i := 1; i < len(began); i++ {
			if i == answered {
				want = 1
			}
			gap := began[i].Sub(began[i-1]).Seconds()
			if gap < 0.79*want || gap > 1.21*want {
				t.Errorf("attempt %d started %.2f s after the previous one, want %.2f s ± 20 %%", i+1, gap, want)
			}
			want = min(want*1.6, 120)
		}
	})
}

// As elsewhere in gRPC, the backoff counts from the beginning of an attempt. After a long stream,
// the next stream must therefore be opened at once.
func TestLongStreamIsReplacedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := startManager(t, func(s *adstest.Stream) error {
			if err := s.Respond("1", "n", adstest.Cluster("a", "10.0.0.1:1")); err != nil {
				return err
			}
			sleep(30 * time.Minute)
			return nil
		})
		_, cancel := m.watch("a")
		sleep(30 * time.Minute)
		synctest.Wait()
		if got := m.server.Streams(); got != 2 {
			t.Errorf("%d streams after the first ended, want 2", got)
		}
		cancel()
		sleep(time.Hour)
	})
}
