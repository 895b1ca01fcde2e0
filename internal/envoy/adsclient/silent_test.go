package adsclient

import (
	"context"
	"errors"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

func TestConnectionThatNeverResponds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := startManager(t, (*adstest.Stream).Drain)
		server := m.serverConfig()
		server.DialOptions = []grpc.DialOption{grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			clientConn, serverConn := net.Pipe()
			go func() {
				buffer := make([]byte, 1<<10)
				for {
					if _, err := serverConn.Read(buffer); err != nil {
						return
					}
				}
			}()
			return clientConn, nil
		})}
		a := new(recordingWatcher)
		defer Watch(server, Endpoints, "a", a, nil)()
		sleep(19 * time.Second)
		expect(t, "a", a.take())
		sleep(time.Second) // the connection timeout of gRPC
		expect(t, "a", a.take(), "no endpoints of cluster")
	})
}

// The first server responds late and does not send one of the two resources. The client must use it
// nevertheless, and the other resource must count as missing.
func TestSlowServerWithMissingResource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := func(s *adstest.Stream) error {
			sleep(missingAfter + 5*time.Second)
			return errors.Join(s.Respond("1", "n", adstest.Cluster("a", "10.0.0.1:1")), s.Drain())
		}
		second := func(s *adstest.Stream) error {
			for names := 0; names < 2; {
				r, err := s.Recv()
				if err != nil {
					return err
				}
				names = len(r.GetResourceNames())
			}
			return errors.Join(s.Respond("1", "n", adstest.Cluster("a", "10.0.0.1:1", "10.0.0.2:1"), adstest.Cluster("b", "10.0.0.3:1")), s.Drain())
		}
		m := startManagers(t, map[string]adstest.Script{"first": first, "second": second})
		n := new(recordingWatcher)
		defer Follow(Target{
			Cluster: "a",
			Servers: []Server{m["first"].serverConfig(), m["second"].serverConfig()},
			Needs:   func(map[string]State) Needs { return Needs{Endpoints: []string{"a", "b"}} },
		}, recordingFollower{n}, nil).Stop()
		sleep(missingAfter + 10*time.Second)
		received := n.take()
		expect(t, "a", received[max(0, len(received)-2):], "a:2", "b:1")
		late, cancel := m["first"].watch("b")
		defer cancel()
		expect(t, "late", late.take())
		sleep(missingAfter)
		expect(t, "a", n.take(), "a:1", `no endpoints of cluster "b" from passthrough:///first: the server has no such resource`)
		expect(t, "late", late.take(), "the server has no such resource")
	})
}

func goAway(s *adstest.Stream, after time.Duration) error {
	select {
	case <-s.Context().Done():
	case <-time.After(after):
	}
	return errors.New("go away")
}

// A server ends each stream after a response. It must not count as unreachable. A resource that it
// does not send must count as missing.
func TestServerThatEndsEachStreamIsNotUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := func(s *adstest.Stream) error {
			if err := s.Respond("1", "n"); err != nil {
				return err
			}
			return goAway(s, 100*time.Millisecond)
		}
		two := 2
		m := startManagers(t, map[string]adstest.Script{"first": first, "second": serveEndpoints(&two)})
		a, stop := follow(false, m["first"], m["second"])
		defer stop()
		sleep(missingAfter)
		expect(t, "a", a.take(), "from passthrough:///first: the server has no such resource")
		sleep(10 * time.Minute)
		if got := a.take(); slices.Contains(got, "a:2") {
			t.Errorf("received %q, want no endpoints, because the first server has none", got)
		}
		expectOutages(t, "a", a)
	})
}

// A server responds on its first stream and sends nothing on the next one. It must count as
// unreachable.
func TestServerSilentOnNextStreamIsUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := func(s *adstest.Stream) error {
			if s.Number > 1 {
				return s.Drain()
			}
			if err := s.Respond("1", "n"); err != nil {
				return err
			}
			return goAway(s, 5*time.Second)
		}
		two := 2
		m := startManagers(t, map[string]adstest.Script{"first": first, "second": serveEndpoints(&two)})
		a, stop := follow(true, m["first"], m["second"])
		defer stop()
		sleep(missingAfter)
		expect(t, "a", a.take(), "from passthrough:///first: the server has no such resource")
		sleep(missingAfter)
		if got := a.take(); !slices.Contains(got, "a:2") {
			t.Errorf("received %q, want the second server's endpoints", got)
		}
	})
}
