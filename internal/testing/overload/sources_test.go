package overload

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"

	"github.com/understudy-lb/understudy"
	"github.com/understudy-lb/understudy/discovery"
)

// Worlds in which priorities are near groups, or are added while calls run. In percent of the calls,
// like the rows of TestLibrary. All rows run with -all.
func TestLibrarySources(t *testing.T) {
	outage := func(f Fault, from, to int) World {
		span := Span{time.Duration(from) * time.Second, time.Duration(to) * time.Second}
		return filled(World{Load: 150, Length: 80 * time.Second, Trouble: span, Events: []Event{{From: span.From, To: span.To, Server: all, Fault: f}}})
	}
	for _, row := range []struct {
		name  string
		world World
		dial  dialer
		want  float64
	}{
		{"near group, 300/s of 200+200", filled(World{Load: 300, Length: 60 * time.Second, From: 20 * time.Second}), zones, 0.5},
		{"near group of 3 endpoints, 300/s of 180+400", filled(World{Load: 300, Length: 60 * time.Second, From: 20 * time.Second, Priorities: [][]Server{same(3, fifo(3)), same(4, fifo(5))}}), zones, 2},
		{"near group hangs for 30 s", outage(Hang, 20, 50), zones, 3},
		{"near group is killed for 30 s", outage(Down, 20, 50), zones, 3},
		{"added on top at 20 s, good", filled(World{Load: 150, Length: 60 * time.Second}), added, 0.01},
		{"added on top at 20 s, 300/s", filled(World{Load: 300, Length: 60 * time.Second, From: 20 * time.Second}), added, 8},
		{"added on top at 20 s, hangs", outage(Hang, 0, 50), added, 3},
		{"added on top at 20 s, UNAVAILABLE", outage(Unavailable, 0, 50), added, 3},
		{"added on top at 20 s, refuses connections", outage(Down, 0, 50), added, 3},
	} {
		if !*whole {
			continue
		}
		t.Run(row.name, func(t *testing.T) {
			lost := playLibrary(t, row.world, row.dial)
			t.Logf("%.2f %% lost, want %v", lost, row.want)
			if lost > row.want {
				t.Errorf("%.2f %% of the calls are lost, want at most %v", lost, row.want)
			}
		})
	}
}

// worldSource has the priorities of a world. With later, it begins with the second one, and adds the
// first one after 20 s.
type worldSource struct {
	world World
	zones bool
	later bool
}

func init() {
	discovery.Register("world", func(t *discovery.Target) ([]discovery.Mechanism, error) {
		return []discovery.Mechanism{{Source: discovery.OwnOptions(t, worldSource{})}}, nil
	})
}

func (worldSource) Check(bool) error { return nil }

func (s worldSource) Start(r *discovery.Receiver) (discovery.Started, error) {
	if !s.later {
		return discovery.Started{}, r.Update(s.answer(0))
	}
	timer := time.AfterFunc(20*time.Second, func() { r.Update(s.answer(0)) })
	return discovery.Started{Close: func() { timer.Stop() }}, r.Update(s.answer(1))
}

// answer has the priorities from this one on, or one priority with a zone for each.
func (s worldSource) answer(from int) (a discovery.Answer) {
	var localities []discovery.Locality
	for p := from; p < len(s.world.Priorities); p++ {
		l := discovery.Locality{Region: "r", Zone: string(rune('a' + p))}
		for i := range s.world.Priorities[p] {
			l.Endpoints = append(l.Endpoints, discovery.Endpoint{Addresses: []string{addressOf(p, i)}})
		}
		localities = append(localities, l)
	}
	if s.zones {
		return discovery.Answer{Priorities: []discovery.Priority{{Localities: localities}}}
	}
	for _, l := range localities {
		a.Priorities = append(a.Priorities, discovery.Priority{Localities: []discovery.Locality{l}})
	}
	return a
}

func zones(w World, opts ...grpc.DialOption) (*grpc.ClientConn, error) {
	return dialSource("world:///?prefer=zone&zone=a&region=r", worldSource{world: w, zones: true}, opts)
}

func added(w World, opts ...grpc.DialOption) (*grpc.ClientConn, error) {
	return dialSource("world:///", worldSource{world: w, later: true}, opts)
}

func dialSource(target string, source worldSource, opts []grpc.DialOption) (*grpc.ClientConn, error) {
	options := understudy.Recommended()
	options.Sources = append(options.Sources, discovery.OwnOption(func(s *worldSource) { *s = source }))
	return understudy.NewClient(target, options, opts...)
}

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
