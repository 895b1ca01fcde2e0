package adsclient

import (
	"context"
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
