package adsclient

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/credentials"
	estats "google.golang.org/grpc/experimental/stats"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

func expect(t *testing.T, who string, got []string, want ...string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s received %q, want %q", who, got, want)
	}
	for i := range want {
		if !strings.Contains(got[i], want[i]) {
			t.Fatalf("%s received %q, want %q", who, got, want)
		}
	}
}

func TestMissingClusterTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := make(chan struct{})
		m := startManager(t, func(s *adstest.Stream) error {
			<-late
			return errors.Join(s.Respond("1", "n1", adstest.Cluster("a", "10.0.0.1:1")), s.Drain())
		})
		a, cancel := m.watch("a")
		defer cancel()
		sleep(15*time.Second - 1)
		expect(t, "a", a.take())
		sleep(1)
		expect(t, "a", a.take(), `cluster "a" from passthrough:///TestMissingClusterTimesOut: the server has no such resource`)
		close(late)
		expect(t, "a", a.take(), "a:1")
	})
}

func TestStreamIsSharedAndCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked [][]string
		open := 0
		m := startManager(t, func(s *adstest.Stream) error {
			open++
			defer func() { open-- }()
			for {
				r, err := s.Recv()
				if err != nil {
					return err
				}
				asked = append(asked, r.GetResourceNames())
				if r.GetResponseNonce() == "" {
					err = s.Respond("1", "n", adstest.Cluster("a", "10.0.0.1:1"), adstest.Cluster("b", "10.0.0.1:1", "10.0.0.2:1"))
				}
				if err != nil {
					return err
				}
			}
		})
		a1, cancelA1 := m.watch("a")
		expect(t, "a1", a1.take(), "a:1")
		a2, cancelA2 := m.watch("a")
		expect(t, "a2", a2.take(), "a:1")
		expect(t, "a1", a1.take())
		_, cancelB := m.watch("b")
		cancelA1()
		cancelA1()
		synctest.Wait()
		cancelA2()
		synctest.Wait()
		if open != 1 {
			t.Errorf("%d streams are open, want 1", open)
		}
		want := [][]string{{"a"}, {"a"}, {"a", "b"}}
		if !slices.EqualFunc(asked, want, slices.Equal) {
			t.Errorf("requested %q, want %q", asked, want)
		}
		cancelB()
		synctest.Wait()
		if open != 0 || len(clients.clients) != 0 {
			t.Errorf("%d streams and %d clients remain", open, len(clients.clients))
		}
	})
}

type gauge struct {
	estats.UnimplementedMetricsRecorder
	value atomic.Int64
}

func (g *gauge) RecordInt64UpDownCount(_ *estats.Int64UpDownCountHandle, n int64, _ ...string) {
	g.value.Add(n)
}

func TestCancelledWatcherGetsNoUpdates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := make(chan struct{})
		m := startManager(t, func(s *adstest.Stream) error {
			s.Respond("1", "n1", adstest.Cluster("a", "10.0.0.1:1"))
			<-next
			return errors.Join(s.Respond("2", "n2", adstest.Cluster("a", "10.0.0.1:1", "10.0.0.2:1")), s.Drain())
		})
		gone, cancel := m.watch("a")
		stays, cancelStays := m.watch("a")
		defer cancelStays()
		expect(t, "gone", gone.take(), "a:1")
		expect(t, "stays", stays.take(), "a:1")
		cancel()
		close(next)
		expect(t, "stays", stays.take(), "a:2")
		expect(t, "gone", gone.take())
	})
}

func TestDifferentCredentialsDoNotShareStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := startManager(t, (*adstest.Stream).Drain)
		type named struct {
			credentials.TransportCredentials
			name string
		}
		for _, name := range []string{"x", "x", "y"} {
			server := m.serverConfig()
			server.Credentials = named{server.Credentials, name}
			defer Watch(server, Endpoints, "a", new(recordingWatcher), nil)()
		}
		synctest.Wait()
		if got := m.server.Streams(); got != 2 {
			t.Errorf("%d streams for two kinds of credentials, want 2", got)
		}
	})
}

func TestHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := startManager(t, func(s *adstest.Stream) error {
			s.Recv()
			return errors.Join(s.Respond("1", "n1", adstest.Cluster("a", "10.0.0.1:1")), s.Drain())
		})
		n, cancel := m.watch("a")
		defer cancel()
		expect(t, "at the start", n.take(), "a:1")
		age := func(what string, least, most time.Duration) {
			t.Helper()
			if got := time.Since(LastMessage(m.serverConfig())); got < least || got > most {
				t.Errorf("%s: last message %v ago, want %v to %v", what, got, least, most)
			}
		}
		sleep(time.Hour)
		age("a stream without news", 0, 0)
		m.stop()
		sleep(time.Hour)
		age("an hour after the server died", time.Hour, time.Hour)
		m.start()
		sleep(3 * time.Minute)
		age("after it came back", 0, 0)
		expect(t, "all the time", n.take())
	})
}

func TestResourcesSurviveLostStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var streams atomic.Int64
		script := func(s *adstest.Stream) error {
			r, err := s.Recv()
			if err != nil {
				return err
			}
			if r.GetVersionInfo() != "" || r.GetResponseNonce() != "" || r.GetNode().GetId() != "test" {
				t.Errorf("a stream began with %v", r)
			}
			addresses := []string{"10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1"}[:streams.Add(1)]
			return errors.Join(s.Respond("1", "n", adstest.Cluster("a", addresses...)), s.Drain())
		}
		m := startManager(t, script)
		a, cancel := m.watch("a")
		defer cancel()
		expect(t, "a", a.take(), "a:1")
		sleep(time.Hour)
		m.stop()
		sleep(time.Hour)
		expect(t, "a", a.take())
		late, cancelLate := m.watch("a")
		defer cancelLate()
		expect(t, "late", late.take(), "a:1")
		m.start()
		sleep(144 * time.Second)
		expect(t, "a", a.take(), "a:2")
		expect(t, "late", late.take(), "a:2")
	})
}
