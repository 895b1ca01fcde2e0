package adsclient

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

// hangUntil is a server that sends the endpoints of cluster "a". It then sends nothing until wake
// is closed, and calls respond.
func hangUntil(wake <-chan struct{}, respond func(*adstest.Stream) error) adstest.Script {
	return func(s *adstest.Stream) error {
		if err := s.Respond("1", "n", adstest.Cluster("a", "10.0.0.1:1")); err != nil {
			return err
		}
		select {
		case <-wake:
			return errors.Join(respond(s), s.Drain())
		case <-s.Context().Done():
			return s.Context().Err()
		}
	}
}

func servingB(s *adstest.Stream) error {
	return errors.Join(s.Respond("1", "n", adstest.Cluster("b", "10.0.0.1:1", "10.0.0.2:1")), s.Drain())
}

// The first server sends the endpoints of one channel and then hangs. A channel that is created
// later must use the next server until the first one responds again. The first channel must keep
// its endpoints.
func TestHangingServerIsReplacedForNewChannels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wake := make(chan struct{})
		m := startManagers(t, map[string]adstest.Script{
			"first": hangUntil(wake, func(s *adstest.Stream) error {
				return s.Respond("2", "n2", adstest.Cluster("b", "10.0.0.1:1"))
			}),
			"second": servingB,
		})
		a, _ := follow("a", true, m["first"], m["second"])
		expect(t, "a", a.take(), "a:1")
		b, _ := follow("b", false, m["first"], m["second"])
		sleep(missingAfter - 1)
		expect(t, "b", b.take())
		sleep(1)
		expect(t, "b", b.take(), "b:2")
		late, _ := follow("b", false, m["first"], m["second"])
		expect(t, "late", late.take(), "b:2")
		sleep(time.Hour)
		expect(t, "a", a.take())
		close(wake)
		expect(t, "b", b.take(), "b:1")
		expect(t, "late", late.take(), "b:1")
		why := "management server passthrough:///first cannot be reached: no response within 15s; passthrough:///second is used"
		expectOutages(t, "a", a)
		expectOutages(t, "b", b, why, "")
		expectOutages(t, "late", late, why, "")
	})
}

// A cluster is requested, and the next response does not contain it. When its timeout expires, the
// cluster must count as absent. The response must also restart the timeout of a cluster that was
// requested earlier and got no response until then.
func TestMissingClusterAfterResponseIsAbsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wake := make(chan struct{})
		m := startManagers(t, map[string]adstest.Script{
			"first": hangUntil(wake, func(s *adstest.Stream) error {
				return s.Respond("2", "n2", adstest.Cluster("a", "10.0.0.1:1", "10.0.0.2:1"))
			}),
			"second": servingB,
		})
		a, _ := m["first"].watch("a")
		expect(t, "a", a.take(), "a:1")
		alone, _ := follow("b", false, m["first"])
		sleep(missingAfter)
		expect(t, "alone", alone.take(), "the server has no such resource, or hangs")
		expectOutages(t, "alone", alone)
		c, _ := m["first"].watch("c")
		sleep(time.Second)
		close(wake)
		expect(t, "a", a.take(), "a:2")
		sleep(missingAfter - time.Second)
		expect(t, "c", c.take(), `cluster "c" from passthrough:///first: the server has no such resource`)
		expect(t, "alone", alone.take())
		sleep(time.Second)
		expect(t, "alone", alone.take(), `cluster "b" from passthrough:///first: the server has no such resource`)
		b, _ := follow("b", false, m["first"], m["second"])
		sleep(time.Hour)
		expect(t, "b", b.take(), "the server has no such resource")
	})
}
