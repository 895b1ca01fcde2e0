package adsclient

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

type quiet struct {
	t         *testing.T
	m         *manager
	catalogue *adstest.Catalogue
	target    Server
	cut, jam  func() // cut drops the server's packets; jam also makes its sends block
	a         *notes
	open      atomic.Int64
	gauge     gauge
	cancel    func()
}

// startQuiet starts a server with a catalogue. If script is set, it may return another script for a
// stream.
func startQuiet(t *testing.T, script func(stream int) adstest.Script) *quiet {
	q := &quiet{t: t, a: new(notes), catalogue: adstest.NewCatalogue(adstest.Cluster("a", "10.0.0.1:1"))}
	q.m = startManager(t, func(s *adstest.Stream) error {
		q.open.Add(1)
		defer q.open.Add(-1)
		if other := script(s.Number); other != nil {
			return other(s)
		}
		return q.catalogue.Serve(s)
	})
	target, cut := q.m.cabled()
	q.target, q.cut, q.jam = target, func() { cut(false) }, func() { cut(true) }
	q.cancel = Watch(q.target, Endpoints, "a", q.a, &q.gauge)
	expect(t, "a", q.a.take(), "a:1")
	return q
}

func same(int) adstest.Script { return nil }

func (q *quiet) end() { q.cancel(); q.wantStreams(0, q.m.server.Streams()) }

// wantStreams checks the number of open streams and the number of all streams so far. The metrics
// must count at most one open stream.
func (q *quiet) wantStreams(open, ever int) {
	q.t.Helper()
	synctest.Wait()
	if gotOpen, gotEver := int(q.open.Load()), q.m.server.Streams(); gotOpen != open || gotEver != ever {
		q.t.Errorf("%d of %d streams are open, want %d of %d", gotOpen, gotEver, open, ever)
	}
	if got := q.gauge.value.Load(); got != int64(min(open, 1)) {
		q.t.Errorf("the metric counts %d streams, want %d", got, min(open, 1))
	}
}

func (q *quiet) set(endpoints int) {
	q.catalogue.Set(adstest.Cluster("a", []string{"10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1"}[:endpoints]...))
}

// A server disappears without closing its connections, and another one takes its place. When
// endpoints then fail, the client must use the new server 30 s to 40 s after the last message of
// the old one.
func TestServerThatIsGoneWithoutAWordWhenEndpointsFail(t *testing.T) {
	for about, failedAt := range map[string]time.Duration{"at once": 0, "later": 20 * time.Second, "much later": 4 * time.Minute} {
		t.Run(about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := startQuiet(t, same)
				if q.cut(); failedAt > quietFor {
					q.jam()
				}
				q.set(2)
				pass(failedAt)
				EndpointsFailed(q.target)
				pass(max(0, quietFor-failedAt) - 1)
				q.wantStreams(1, 1)
				pass(quietJitter + 1)
				expect(t, "a", q.a.take(), "a:2")
				wantOutages(t, "a", q.a)
				q.set(3)
				expect(t, "a", q.a.take(), "a:3")
				pass(time.Hour)
				q.cancel()
			})
		})
	}
}

// The stream must be kept if there are no messages and no endpoint fails, and also if a response
// arrives after an endpoint has failed.
func TestAStreamThatBringsSomethingIsNotDoubted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := startQuiet(t, same)
		pass(time.Hour)
		q.wantStreams(1, 1)
		q.set(2)
		EndpointsFailed(q.target)
		pass(quietFor - 1)
		q.set(3)
		pass(time.Hour)
		expect(t, "a", q.a.take(), "a:2", "a:3")
		q.wantStreams(1, 1)
		q.end()
	})
}

// A working server has no updates while an endpoint keeps failing. A second stream may take over at
// most once in 5 minutes. Nothing else may change.
func TestAServerThatIsWellAndHasNothingToSay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := startQuiet(t, same)
		pass(time.Hour)
		for range 600 {
			for range 300 {
				EndpointsFailed(q.target)
			}
			pass(time.Second)
		}
		expect(t, "a", q.a.take())
		wantOutages(t, "a", q.a)
		if got := q.m.server.Streams(); got < 3 || got > 4 {
			t.Errorf("the server saw %d streams in 10 minutes, want 3 or 4", got)
		}
		q.wantStreams(1, q.m.server.Streams())
		q.set(2)
		expect(t, "a", q.a.take(), "a:2")
		q.end()
	})
}

func flood(s *adstest.Stream) error {
	for s.Context().Err() == nil {
		for _, url := range []string{"other", Clusters.url} {
			if err := s.Send(&discoveryv3.DiscoveryResponse{TypeUrl: url}); err != nil {
				return err
			}
		}
		select {
		case <-s.Context().Done():
		case <-time.After(time.Millisecond):
		}
	}
	return nil
}

// A second stream gets no response. The first one must stay in use.
func TestASecondStreamThatIsNotAnswered(t *testing.T) {
	for about, script := range map[string]adstest.Script{
		"silence":                          (*adstest.Stream).Drain,
		"an error":                         func(*adstest.Stream) error { return errors.New("busy") },
		"a flood of unrequested responses": flood,
	} {
		t.Run(about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := startQuiet(t, func(stream int) adstest.Script {
					if stream > 1 {
						return script
					}
					return nil
				})
				pass(time.Minute)
				EndpointsFailed(q.target)
				pass(quietJitter + missingAfter + time.Second)
				q.wantStreams(1, 2)
				q.set(2)
				expect(t, "a", q.a.take(), "a:2")
				wantOutages(t, "a", q.a)
				q.end()
			})
		})
	}
}
