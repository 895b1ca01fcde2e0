package adsclient

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

// A server sends a rejected version again and again. The client must send a NACK only every 5 s. It
// must not delay other requests: the ACK of another version, and a request for other names.
func TestRepeatedNACKIsDelayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const times = 10
		durations := make(chan [3]time.Duration, 1)
		m := startManager(t, func(s *adstest.Stream) error {
			bad := adstest.Cluster("a", "10.0.0.1:1")
			bad.Endpoints[0].Priority = 7
			var nacksTook, changeTook, ackTook time.Duration
			begin := time.Now()
			for i := range times {
				if i > 0 {
					s.Respond("1", "before", bad)
					sleep(3 * time.Second)
				}
				if err := s.Respond("1", fmt.Sprint("n", i), bad); err != nil {
					return err
				}
				if i == 0 {
					s.Recv()
				}
				if r, err := s.Recv(); err != nil || r.GetErrorDetail() == nil || r.GetResponseNonce() != fmt.Sprint("n", i) {
					t.Errorf("%v (%v), want a NACK of response %d", r, err, i)
				}
			}
			nacksTook = time.Since(begin)
			s.Respond("1", "again", bad)
			begin = time.Now()
			r, err := s.Recv()
			if changeTook = time.Since(begin); err != nil || len(r.GetResourceNames()) != 2 || r.GetErrorDetail() == nil {
				t.Errorf("%v (%v), want a NACK that also requests b", r, err)
			}
			begin = time.Now()
			s.Respond("2", "mended", adstest.Cluster("a", "10.0.0.1:1"))
			if r, err := s.Recv(); err != nil || r.GetErrorDetail() != nil || r.GetResponseNonce() != "mended" {
				t.Errorf("%v (%v), want an ACK", r, err)
			}
			ackTook = time.Since(begin)
			durations <- [3]time.Duration{nacksTook, changeTook, ackTook}
			return s.Drain()
		})
		a, _ := m.watch("a")
		sleep(5*(times-1)*time.Second + time.Second)
		m.watch("b")
		sleep(10 * time.Second)
		if got, want := <-durations, [3]time.Duration{5 * (times - 1) * time.Second, time.Second, 0}; got != want {
			t.Errorf("%d NACKs, the NACK with a change, and the ACK took %v, want %v", times, got, want)
		}
		if got := a.take(); len(got) == 0 || got[len(got)-1] != "a:1" {
			t.Errorf("the watcher received %v, want the corrected resource in the end", got)
		}
	})
}

// If a stream ends while a NACK is delayed, this NACK must not be sent on the next stream.
func TestDelayedNACKIsDroppedWithStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := make(chan bool, 1)
		m := startManager(t, func(s *adstest.Stream) error {
			bad := adstest.Cluster("a", "10.0.0.1:1")
			bad.Endpoints[0].Priority = 7
			if s.Number == 1 {
				s.Respond("1", "n1", bad)
				s.Recv()
				s.Recv()
				return s.Respond("1", "n2", bad)
			}
			for {
				r, err := s.Recv()
				if err != nil {
					return err
				}
				if r.GetErrorDetail() != nil || r.GetResponseNonce() != "" {
					late <- true
				}
			}
		})
		m.watch("a")
		sleep(time.Minute)
		if len(late) != 0 {
			t.Error("the second stream received a reply to a response of the first")
		}
	})
}
