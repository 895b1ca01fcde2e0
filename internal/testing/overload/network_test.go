package overload

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/test/bufconn"
)

// network dials the servers of a world. While one is down, its connections are closed, and no new
// ones can be made.
func network(w World, start time.Time, listeners map[string]*bufconn.Listener) func(context.Context, string) (net.Conn, error) {
	var mu sync.Mutex
	open := make(map[string][]net.Conn)
	isDown := func(address string) bool {
		for p, servers := range w.Priorities {
			for i := range servers {
				if b := (&backend{world: w, priority: p, index: i, start: start}); addressOf(p, i) == address {
					return b.has(Down)
				}
			}
		}
		return false
	}
	for _, e := range w.Events {
		if e.Fault == Down {
			time.AfterFunc(time.Until(start.Add(e.From)), func() {
				mu.Lock()
				defer mu.Unlock()
				for address, conns := range open {
					if isDown(address) {
						for _, c := range conns {
							c.Close()
						}
						delete(open, address)
					}
				}
			})
		}
	}
	return func(ctx context.Context, address string) (net.Conn, error) {
		if isDown(address) {
			return nil, errors.New("down")
		}
		c, err := listeners[address].DialContext(ctx)
		if err != nil {
			return nil, err
		}
		mu.Lock()
		defer mu.Unlock()
		open[address] = append(open[address], c)
		return named{c, address}, nil
	}
}

// named is a connection that knows the address that was dialled.
type named struct {
	net.Conn
	address string
}

func (n named) RemoteAddr() net.Addr { return n }
func (named) Network() string        { return "memory" }
func (n named) String() string       { return n.address }
