package adsclient

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

// hangs is a server that sends cluster "a" and then nothing until wake is closed. Then it calls
// say.
func hangs(wake <-chan struct{}, say func(*adstest.Stream) error) adstest.Script {
	return func(s *adstest.Stream) error {
		if err := s.Respond("1", "n", adstest.Cluster("a", "10.0.0.1:1")); err != nil {
			return err
		}
		select {
		case <-wake:
			return errors.Join(say(s), s.Drain())
		case <-s.Context().Done():
			return s.Context().Err()
		}
	}
}

func followB(managers ...*manager) (*notes, func()) {
	target := Target{Cluster: "b", Needs: needs("b")}
	for _, m := range managers {
		target.Servers = append(target.Servers, m.target())
	}
	b := new(notes)
	return b, Follow(target, followed{b}, nil).Stop
}

func servingB(s *adstest.Stream) error {
	return errors.Join(s.Respond("1", "n", adstest.Cluster("b", "10.0.0.1:1", "10.0.0.2:1")), s.Drain())
}

// A server answers one channel and then hangs. A channel that opens later must use the next server
// until the first one responds again. The first channel must keep its endpoints.
func TestServerThatHangsAfterItAnsweredAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wake := make(chan struct{})
		m := startManagers(t, map[string]adstest.Script{
			"first": hangs(wake, func(s *adstest.Stream) error {
				return s.Respond("2", "n2", adstest.Cluster("b", "10.0.0.1:1"))
			}),
			"second": servingB,
		})
		a, stopA := follow(true, m["first"], m["second"])
		defer stopA()
		expect(t, "a", a.take(), "a:1")
		b, stopB := followB(m["first"], m["second"])
		defer stopB()
		pass(missingAfter - 1)
		expect(t, "b", b.take())
		pass(1)
		expect(t, "b", b.take(), "b:2")
		late, stopLate := followB(m["first"], m["second"])
		defer stopLate()
		expect(t, "late", late.take(), "b:2")
		pass(time.Hour)
		expect(t, "a", a.take())
		close(wake)
		expect(t, "b", b.take(), "b:1")
		expect(t, "late", late.take(), "b:1")
		why := "management server passthrough:///first cannot be reached: no response within 15s; passthrough:///second is used"
		wantOutages(t, "a", a)
		wantOutages(t, "b", b, why, "")
		wantOutages(t, "late", late, why, "")
	})
}

// A cluster is requested. If the next response, of whatever type, does not contain it, the cluster
// must count as absent. The response must also restart the timeouts of resources for which the
// server was silent.
func TestServerThatSpokeIsBelieved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wake := make(chan struct{})
		m := startManagers(t, map[string]adstest.Script{
			"first": hangs(wake, func(s *adstest.Stream) error {
				return s.Respond("2", "n2", adstest.Cluster("a", "10.0.0.1:1", "10.0.0.2:1"))
			}),
			"second": servingB,
		})
		a, cancelA := m["first"].watch("a")
		defer cancelA()
		expect(t, "a", a.take(), "a:1")
		alone, stopAlone := followB(m["first"])
		defer stopAlone()
		pass(missingAfter)
		expect(t, "alone", alone.take(), "the server has no such resource, or hangs")
		wantOutages(t, "alone", alone)
		c, cancelC := m["first"].watch("c")
		defer cancelC()
		pass(time.Second)
		close(wake)
		expect(t, "a", a.take(), "a:2")
		pass(missingAfter - time.Second)
		expect(t, "c", c.take(), `cluster "c" from passthrough:///first: the server has no such resource`)
		expect(t, "alone", alone.take())
		pass(time.Second)
		expect(t, "alone", alone.take(), `cluster "b" from passthrough:///first: the server has no such resource`)
		b, stopB := followB(m["first"], m["second"])
		defer stopB()
		pass(time.Hour)
		expect(t, "b", b.take(), "the server has no such resource")
	})
}
