package adsclient

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

// A server that accepts connections and never says a word.
func TestServerThatSaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := startManager(t, (*adstest.Stream).Drain)
		server := m.target()
		server.DialOptions = []grpc.DialOption{grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go func() { // reads all, answers nothing, ends with the client
				buffer := make([]byte, 1<<10)
				for {
					if _, err := theirs.Read(buffer); err != nil {
						return
					}
				}
			}()
			return ours, nil
		})}
		a := new(notes)
		defer Watch(server, Endpoints, "a", a, nil)()
		pass(19 * time.Second)
		expect(t, "a", a.take())
		pass(time.Second) // gRPC's time limit for a connection
		expect(t, "a", a.take(), "no endpoints of cluster")
	})
}

// A server is slow with its first answer, so that the next one is used meanwhile, and it has all
// but one of what is needed: what it does not send from then on it does not have, and it is used.
func TestSlowServerThatLacksOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := func(s *adstest.Stream) error {
			pass(missingAfter + 5*time.Second)
			return errors.Join(s.Respond("1", "n", adstest.Cluster("a", "10.0.0.1:1")), s.Drain())
		}
		second := func(s *adstest.Stream) error {
			return errors.Join(s.Respond("1", "n", adstest.Cluster("a", "10.0.0.1:1", "10.0.0.2:1"), adstest.Cluster("b", "10.0.0.3:1")), s.Drain())
		}
		m := startManagers(t, map[string]adstest.Script{"first": first, "second": second})
		n := new(notes)
		defer Follow(Target{
			Cluster: "a",
			Servers: []Server{m["first"].target(), m["second"].target()},
			Needs:   func(map[string]State) Needs { return Needs{Endpoints: []string{"a", "b"}} },
		}, followed{n}, nil).Stop()
		pass(missingAfter + 10*time.Second)
		expect(t, "a", n.take(), "a:2", "b?", "a:2", "b:1")
		late, cancel := m["first"].watch("b") // before it is clear that there is none
		defer cancel()
		expect(t, "late", late.take())
		pass(missingAfter)
		expect(t, "a", n.take(), "a:1", `no endpoints of cluster "b" from passthrough:///first: the server has no such resource`)
		expect(t, "late", late.take(), "the server has no such resource")
	})
}
