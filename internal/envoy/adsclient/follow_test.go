package adsclient

import (
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

func serveEndpoints(count int) adstest.Script {
	return func(s *adstest.Stream) error {
		if _, err := s.Recv(); err != nil {
			return err
		}
		addresses := []string{"10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1"}[:count]
		return errors.Join(s.Respond("1", "n", adstest.Cluster("a", addresses...)), s.Drain())
	}
}

const reconnectTime = 145 * time.Second

// While the first server is down, the client must use the second one. When the first server is
// reachable again, the client must return to it and disconnect from the second.
func TestFallbackServerIsUsedDuringOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := startManagers(t, map[string]adstest.Script{"first": serveEndpoints(1), "second": serveEndpoints(2)})
		m["first"].stop()
		warnings := logged.Count("management server passthrough:///second is used instead of passthrough:///first")
		a, _ := follow("a", false, m["first"], m["second"])
		expect(t, "a", a.take(), "a:2")
		if got := logged.Count("management server passthrough:///second is used instead of passthrough:///first") - warnings; got != 1 {
			t.Errorf("the change was logged %d times, want once", got)
		}
		m["first"].start()
		sleep(reconnectTime)
		expect(t, "a", a.take(), "a:1")
		if got := len(clients.clients); got != 1 {
			t.Errorf("%d servers are in use, want only the first", got)
		}
	})
}

// The first server goes down after it has sent all resources. By default (gRFC A71), the client
// must keep these resources and not use another server. With ReachabilityOnly (gRFC A95), it must
// use the next server until the first one is reachable again.
func TestFirstServerFailsAfterResponse(t *testing.T) {
	for reachabilityOnly, want := range map[bool][]string{false: nil, true: {"a:2"}} {
		synctest.Test(t, func(t *testing.T) {
			m := startManagers(t, map[string]adstest.Script{"first": serveEndpoints(1), "second": serveEndpoints(2)})
			a, _ := follow("a", reachabilityOnly, m["first"], m["second"])
			expect(t, "a", a.take(), "a:1")
			m["first"].stop()
			sleep(time.Hour)
			expect(t, "a", a.take(), want...)
			if got := m["second"].server.Streams(); got != len(want) {
				t.Errorf("the second server saw %d streams, want %d", got, len(want))
			}
			m["first"].script = serveEndpoints(3)
			m["first"].start()
			sleep(reconnectTime)
			expect(t, "a", a.take(), "a:3")
		})
	}
}

func TestAllServersAreDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := startManagers(t, map[string]adstest.Script{"first": serveEndpoints(1), "second": serveEndpoints(2), "third": serveEndpoints(3)})
		for _, manager := range m {
			manager.stop()
		}
		a, _ := follow("a", false, m["first"], m["second"], m["third"])
		got := a.take()
		expect(t, "a", got, `eds: no endpoints of cluster "a" from passthrough:///first: `)
		expect(t, "a", got, `; from passthrough:///second: `)
		expect(t, "a", got, `; from passthrough:///third: `)
		m["third"].start()
		sleep(reconnectTime)
		expect(t, "a", a.take(), "a:3")
		m["second"].start()
		sleep(reconnectTime)
		expect(t, "a", a.take(), "a:2")
		m["third"].stop()
		m["first"].start()
		sleep(reconnectTime)
		expect(t, "a", a.take(), "a:1")
	})
}

func TestBrokenFirstServers(t *testing.T) {
	for name, script := range map[string]adstest.Script{
		"sends nothing":    (*adstest.Stream).Drain,
		"ends each stream": func(s *adstest.Stream) error { return errors.New("full") },
		"sends another type": func(s *adstest.Stream) error {
			return errors.Join(s.Send(&discoveryv3.DiscoveryResponse{TypeUrl: "type.googleapis.com/other", Nonce: "n"}), s.Drain())
		},
		"rejected, then dead": func(s *adstest.Stream) error {
			if s.Number > 1 {
				return errors.New("full")
			}
			return s.Respond("1", "n", weightless("a"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := startManagers(t, map[string]adstest.Script{"first": script, "second": serveEndpoints(2)})
				a, _ := follow("a", false, m["first"], m["second"])
				sleep(20 * time.Second)
				got := a.take()
				if len(got) == 0 || got[len(got)-1] != "a:2" {
					t.Errorf("received %q, want the second server's endpoints in the end", got)
				}
				sleep(time.Hour)
				expect(t, "a", a.take())
			})
		})
	}
}

func TestStopFollowing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := startManagers(t, map[string]adstest.Script{"first": serveEndpoints(1), "second": serveEndpoints(2)})
		m["first"].stop()
		for wait := range 5 {
			a, stop := follow("a", false, m["first"], m["second"])
			sleep(time.Duration(wait) * time.Millisecond)
			stop()
			stop()
			a.take()
			sleep(time.Minute)
			expect(t, "a", a.take())
		}
		if got := len(clients.clients); got != 0 {
			t.Errorf("%d clients remain", got)
		}
	})
}

type slowFollower struct {
	recordingFollower
	pause func()
}

func (b slowFollower) Changed(s Snapshot) {
	b.recordingFollower.Changed(s)
	b.pause()
}

// Three updates arrive while the follower handles the first one. They must cause a single call of
// Changed.
func TestBurstOfUpdatesIsOneChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		addresses := []string{"10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1", "10.0.0.4:1"}
		m := startManager(t, func(s *adstest.Stream) error {
			s.Recv()
			for i := range addresses {
				if err := s.Respond(strconv.Itoa(i), strconv.Itoa(i), adstest.Cluster("a", addresses[:i+1]...)); err != nil {
					return err
				}
				time.Sleep(time.Second)
			}
			return s.Drain()
		})
		n := new(recordingWatcher)
		defer Follow(Target{Cluster: "a", Servers: []Server{m.serverConfig()}, Needs: needs("a")}, slowFollower{recordingFollower{n}, func() { time.Sleep(time.Minute) }}, nil).Stop()
		sleep(time.Hour)
		expect(t, "a", n.take(), "a:1", "a:4")
	})
}

// The first server may be used again in the same batch of events in which somebody asks when we
// last heard from the server in use.
func TestLastMessageDuringFailback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := startManagers(t, map[string]adstest.Script{"first": serveEndpoints(1), "second": serveEndpoints(2)})
		m["first"].stop()
		target := Target{Cluster: "a", Needs: needs("a"), Servers: []Server{m["first"].serverConfig(), m["second"].serverConfig()}}
		g := Follow(target, recordingFollower{new(recordingWatcher)}, nil)
		defer g.Stop()
		synctest.Wait()
		hold := make(chan struct{})
		g.serial.Enqueue(func() { <-hold })
		m["first"].start()
		sleep(reconnectTime)
		go func() {
			synctest.Wait()
			close(hold)
		}()
		if last := g.LastMessage(); !last.Equal(time.Now()) {
			t.Errorf("the last message came %v ago, want now", time.Since(last))
		}
	})
}
