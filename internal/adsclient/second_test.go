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

func (q *quiet) waitForSecond() {
	for range 1000 {
		if pass(quietJitter / 1000); q.m.server.Streams() > 1 {
			return
		}
	}
	q.t.Error("no second stream was opened")
}

func slowSecond(q **quiet) func(int) adstest.Script {
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

// startDoubt starts a server. An endpoint has failed and the first stream is quiet, so its client
// waits for a response on a second stream.
func startDoubt(t *testing.T) (q *quiet) {
	q = startQuiet(t, slowSecond(&q))
	pass(time.Minute)
	EndpointsFailed(q.target)
	q.waitForSecond()
	q.wantStreams(2, 2)
	return q
}

// While the client waits for a response on a second stream, an update arrives on the first one. The
// first stream must stay in use.
func TestTheFirstStreamWakesWhileASecondOneWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := startDoubt(t)
		q.set(2)
		expect(t, "a", q.a.take(), "a:2")
		q.wantStreams(1, 2)
		pass(time.Minute)
		q.wantStreams(1, 2)
		q.end()
	})
}

// The same holds if the response to a new request arrives on the first stream.
func TestAnAnswerWhileASecondStreamWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := startDoubt(t)
		q.catalogue.Set(adstest.EDS("c"))
		c := new(notes)
		cancel := Watch(q.target, Clusters, "c", c, nil)
		expect(t, "c", c.take(), "cluster c")
		q.wantStreams(1, 2)
		cancel()
		q.end()
	})
}

func TestTheEndWhileASecondStreamWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		startDoubt(t).end()
		q := startQuiet(t, same)
		EndpointsFailed(q.target)
		pass(quietFor - 1)
		q.end()
		EndpointsFailed(q.target)
	})
}

// Both streams end while the client waits for a response on the second one. The client must connect
// again as usual.
func TestAServerThatEndsWhileASecondStreamWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := startDoubt(t)
		q.m.stop()
		pass(time.Minute)
		q.m.start()
		pass(longest)
		q.wantStreams(1, 1)
		expect(t, "a", q.a.take())
		q.end()
	})
}

// Resources are first watched while the client waits for a response on a second stream. They must
// be requested on that stream, too.
func TestWhatIsWatchedWhileASecondStreamWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q *quiet
		q = startQuiet(t, slowSecond(&q))
		q.cut()
		q.catalogue.Set(adstest.Cluster("b", "10.0.0.1:1"), adstest.EDS("c"))
		EndpointsFailed(q.target)
		pass(quietFor)
		q.waitForSecond()
		b, c := new(notes), new(notes)
		defer Watch(q.target, Endpoints, "b", b, nil)()
		defer Watch(q.target, Clusters, "c", c, nil)()
		pass(10 * time.Second)
		expect(t, "b", b.take(), "b:1")
		expect(t, "c", c.take(), "cluster c")
		expect(t, "a", q.a.take())
		q.cancel()
	})
}

// A second stream receives no usable resource. The first one must stay in use.
func TestASecondStreamThatAnswersOtherwise(t *testing.T) {
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
				pass(quietFor + quietJitter + time.Minute)
				expect(t, "a", q.a.take())
				wantOutages(t, "a", q.a)
				later := new(notes)
				defer Watch(q.target, Endpoints, "a", later, nil)()
				expect(t, "later", later.take(), "a:1")
				q.cancel()
			})
		})
	}
}

// The server allows pings. A second stream takes over before the frequent pings have begun.
// Afterwards, no further stream may be opened, because the pings show that the server is there.
func TestASecondStreamToAServerThatAllowsPings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, target, cut := startPinged(t, 9*time.Second, func(int) string { return "30s" })
		a := new(notes)
		defer Watch(target, Endpoints, "a", a, nil)()
		expect(t, "a", a.take(), "a:1")
		EndpointsFailed(target)
		pass(quietFor + quietJitter + time.Second)
		if got := m.server.Streams(); got != 2 {
			t.Fatalf("the server saw %d streams, want 2", got)
		}
		pass(time.Hour)
		EndpointsFailed(target)
		pass(time.Hour)
		if got := m.server.Streams(); got != 3 {
			t.Errorf("the server saw %d streams, want 3 with frequent pings on the last", got)
		}
		cut()
		pass(51 * time.Second)
		if got := m.server.Streams(); got != 4 {
			t.Errorf("the server saw %d streams, want 4 after the connection was cut", got)
		}
		expect(t, "a", a.take())
		wantOutages(t, "a", a)
	})
}

func (m *manager) listen(l *bufconn.Listener) *bufconn.Listener {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.listener
	m.listener = l
	return before
}

// The first stream ends before a second one has taken over. The client must open a new stream as
// usual.
func TestTheFirstStreamEndsBeforeASecondTakesOver(t *testing.T) {
	for about, after := range map[string]time.Duration{"due": time.Second, "waits": quietFor + quietJitter} {
		t.Run(about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				end := make(chan struct{})
				var q *quiet
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
				pass(after)
				opened := q.m.server.Streams()
				listener := q.m.listen(nil)
				close(end)
				pass(time.Minute)
				q.wantStreams(0, opened)
				q.m.listen(listener)
				pass(longest)
				q.wantStreams(1, opened+1)
				q.set(2)
				expect(t, "a", q.a.take(), "a:2")
				q.end()
			})
		})
	}
}

func TestASecondStreamAsksOnce(t *testing.T) {
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
		pass(time.Minute)
		q.end()
		if want := []string{`test ["a"] "" ""`, ` ["a"] "2" "n2"`}; !slices.Equal(requests, want) {
			t.Errorf("the server received %q, want %q", requests, want)
		}
	})
}
