package adsclient

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/test/bufconn"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

func (q *quietServer) waitForSecond() {
	for range 1000 {
		if sleep(quietJitter / 1000); q.m.server.Streams() > 1 {
			return
		}
	}
	q.t.Error("no second stream was opened")
}

func slowSecond(q **quietServer) func(int) adstest.Script {
	return func(stream int) adstest.Script {
		if stream == 1 {
			return nil
		}
		return func(s *adstest.Stream) error {
			select {
			case <-time.After(10 * time.Second):
			case <-s.Context().Done():
			}
			return (*q).catalogue.Serve(s)
		}
	}
}

// startSecondStream starts a server and returns when the client has opened a second stream, because
// an endpoint has failed and the first stream is silent. The server serves the second stream only
// after 10 s.
func startSecondStream(t *testing.T) (q *quietServer) {
	q = startQuiet(t, slowSecond(&q))
	sleep(time.Minute)
	EndpointsFailed(q.target)
	q.waitForSecond()
	q.wantStreams(2, 2)
	return q
}

// While the client waits for a response on the second stream, the response to a new request arrives
// on the first one. The first stream must stay in use.
func TestResponseOnFirstStreamCancelsSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := startSecondStream(t)
		q.catalogue.Set(adstest.EDS("c"))
		c := new(recordingWatcher)
		cancel := Watch(q.target, Clusters, "c", c, nil)
		expect(t, "c", c.take(), "cluster c")
		q.wantStreams(1, 2)
		cancel()
		q.stop()
	})
}

func TestCancelWhileSecondStreamWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		startSecondStream(t).stop()
		q := startQuiet(t, serveCatalogue)
		EndpointsFailed(q.target)
		sleep(quietFor - 1)
		q.stop()
		EndpointsFailed(q.target)
	})
}

// Both streams end while the client waits for a response on the second one. The client must open a
// new stream.
func TestServerStopsWhileSecondStreamWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := startSecondStream(t)
		q.m.stop()
		sleep(time.Minute)
		q.m.start()
		sleep(reconnectTime)
		q.wantStreams(1, 1)
		expect(t, "a", q.a.take())
		q.stop()
	})
}

// Watchers subscribe while the client waits for a response on the second stream. Their resources
// must be requested on that stream, too.
func TestWatchWhileSecondStreamWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q *quietServer
		q = startQuiet(t, slowSecond(&q))
		q.cut()
		q.catalogue.Set(adstest.Cluster("b", "10.0.0.1:1"), adstest.EDS("c"))
		EndpointsFailed(q.target)
		sleep(quietFor)
		q.waitForSecond()
		b, c := new(recordingWatcher), new(recordingWatcher)
		defer Watch(q.target, Endpoints, "b", b, nil)()
		defer Watch(q.target, Clusters, "c", c, nil)()
		sleep(10 * time.Second)
		expect(t, "b", b.take(), "b:1")
		expect(t, "c", c.take(), "cluster c")
		expect(t, "a", q.a.take())
	})
}

// The first response on the second stream contains no usable resource. The client must keep the
// resource that it has.
func TestSecondStreamWithoutUsableResource(t *testing.T) {
	for about, answer := range map[string]*discoveryv3.DiscoveryResponse{
		"nothing": response("9"),
		"another": response("9", adstest.Any(adstest.Cluster("z", "10.0.0.9:1"))),
		"a bad":   response("9", adstest.Any(weightless("a"))),
		"a type":  response("9", adstest.Any(&clusterv3.Cluster{Name: "a"})),
	} {
		t.Run(about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := startQuiet(t, func(stream int) adstest.Script {
					if stream == 1 {
						return nil
					}
					return func(s *adstest.Stream) error { return errors.Join(s.Send(answer), s.Drain()) }
				})
				q.cut()
				EndpointsFailed(q.target)
				sleep(quietFor + quietJitter + time.Minute)
				expect(t, "a", q.a.take())
				expectOutages(t, "a", q.a)
				later := new(recordingWatcher)
				defer Watch(q.target, Endpoints, "a", later, nil)()
				expect(t, "later", later.take(), "a:1")
			})
		})
	}
}

// The server allows frequent pings, but a second stream takes over before they have begun. When
// they have begun, no further second stream may be opened, because the pings show that the server
// is reachable.
func TestSecondStreamWithFrequentPings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, target, cut := startPingServer(t, 9*time.Second, func(int) string { return "30s" })
		a := new(recordingWatcher)
		defer Watch(target, Endpoints, "a", a, nil)()
		expect(t, "a", a.take(), "a:1")
		EndpointsFailed(target)
		sleep(quietFor + quietJitter + time.Second)
		if got := m.server.Streams(); got != 2 {
			t.Fatalf("the server saw %d streams, want 2", got)
		}
		sleep(time.Hour)
		EndpointsFailed(target)
		sleep(time.Hour)
		if got := m.server.Streams(); got != 3 {
			t.Errorf("the server saw %d streams, want 3 with frequent pings on the last", got)
		}
		cut()
		sleep(51 * time.Second)
		if got := m.server.Streams(); got != 4 {
			t.Errorf("the server saw %d streams, want 4 after the connection was cut", got)
		}
		expect(t, "a", a.take())
		expectOutages(t, "a", a)
	})
}

func (m *manager) setListener(listener *bufconn.Listener) *bufconn.Listener {
	m.mu.Lock()
	defer m.mu.Unlock()
	previous := m.listener
	m.listener = listener
	return previous
}

// The first stream ends before a second stream has taken over. The client must open a new stream.
func TestFirstStreamEndsBeforeTakeover(t *testing.T) {
	for about, after := range map[string]time.Duration{"due": time.Second, "waits": quietFor + quietJitter} {
		t.Run(about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				end := make(chan struct{})
				var q *quietServer
				second := slowSecond(&q)
				q = startQuiet(t, func(stream int) adstest.Script {
					if stream != 1 {
						return second(stream)
					}
					return func(s *adstest.Stream) error {
						err := s.Respond("1", "n", adstest.Cluster("a", "10.0.0.1:1"))
						<-end
						return err
					}
				})
				EndpointsFailed(q.target)
				sleep(after)
				opened := q.m.server.Streams()
				listener := q.m.setListener(nil)
				close(end)
				sleep(time.Minute)
				q.wantStreams(0, opened)
				q.m.setListener(listener)
				sleep(reconnectTime)
				q.wantStreams(1, opened+1)
				q.set(2)
				expect(t, "a", q.a.take(), "a:2")
				q.stop()
			})
		})
	}
}

// A response on the first stream has been read, but the second stream takes over before the response
// is applied. It must have no effect: it may be older than the response on the second stream.
func TestResponseOnReplacedStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := startSecondStream(t)
		c := find(q.target)
		var first *stream
		c.serial.Do(func() { first = c.current })
		sleep(10 * time.Second)
		q.wantStreams(1, 2)
		c.received(first, response("9", adstest.Any(adstest.Cluster("a", "10.0.0.1:1", "10.0.0.2:1"))), nil)
		expect(t, "a", q.a.take())
		c.serial.Do(func() {
			if c.ignoredType != "" {
				t.Errorf("logged that responses of type %q are ignored", c.ignoredType)
			}
		})
		q.stop()
	})
}

func TestSecondStreamRequestsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var requests []string
		q := startQuiet(t, func(stream int) adstest.Script {
			if stream == 1 {
				return nil
			}
			return func(s *adstest.Stream) error {
				err := s.Respond("2", "n2", adstest.Cluster("a", "10.0.0.1:1"))
				for err == nil {
					var r *discoveryv3.DiscoveryRequest
					if r, err = s.Recv(); err == nil {
						requests = append(requests, fmt.Sprintf("%s %q %q %q", r.GetNode().GetId(), r.GetResourceNames(), r.GetVersionInfo(), r.GetResponseNonce()))
					}
				}
				return err
			}
		})
		EndpointsFailed(q.target)
		sleep(time.Minute)
		q.stop()
		if want := []string{`test ["a"] "" ""`, ` ["a"] "2" "n2"`}; !slices.Equal(requests, want) {
			t.Errorf("the server received %q, want %q", requests, want)
		}
	})
}
