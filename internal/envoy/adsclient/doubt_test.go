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

type quietServer struct {
	t           *testing.T
	m           *manager
	catalogue   *adstest.Catalogue
	target      Server
	cut, jam    func() // cut drops the server's packets; jam also makes its sends block
	a           *recordingWatcher
	openStreams atomic.Int64
	gauge       gauge
	cancel      func()
}

// startQuiet starts a server that serves a catalogue. For each stream, scriptFor returns a script
// that replaces the catalogue, or nil.
func startQuiet(t *testing.T, scriptFor func(stream int) adstest.Script) *quietServer {
	q := &quietServer{t: t, a: new(recordingWatcher), catalogue: adstest.NewCatalogue(adstest.Cluster("a", "10.0.0.1:1"))}
	q.m = startManager(t, func(s *adstest.Stream) error {
		q.openStreams.Add(1)
		defer q.openStreams.Add(-1)
		if other := scriptFor(s.Number); other != nil {
			return other(s)
		}
		return q.catalogue.Serve(s)
	})
	target, cut := q.m.withCable()
	q.target, q.cut, q.jam = target, func() { cut(false) }, func() { cut(true) }
	q.cancel = Watch(q.target, Endpoints, "a", q.a, &q.gauge)
	t.Cleanup(q.cancel)
	expect(t, "a", q.a.take(), "a:1")
	return q
}

func serveCatalogue(int) adstest.Script { return nil }

func (q *quietServer) stop() { q.cancel(); q.wantStreams(0, q.m.server.Streams()) }

// wantStreams checks the number of open streams, and the total number of streams since the start.
// The metrics must count at most one open stream.
func (q *quietServer) wantStreams(open, total int) {
	q.t.Helper()
	synctest.Wait()
	if gotOpen, gotTotal := int(q.openStreams.Load()), q.m.server.Streams(); gotOpen != open || gotTotal != total {
		q.t.Errorf("%d of %d streams are open, want %d of %d", gotOpen, gotTotal, open, total)
	}
	if got := q.gauge.value.Load(); got != int64(min(open, 1)) {
		q.t.Errorf("the metric counts %d streams, want %d", got, min(open, 1))
	}
}

func (q *quietServer) set(endpoints int) {
	q.catalogue.Set(adstest.Cluster("a", []string{"10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1"}[:endpoints]...))
}

// A server disappears without closing its connections, and a new server takes its place. When
// endpoints then fail, the client must receive the new server's endpoints 30 s to 40 s after the
// last message of the old server.
func TestSilentlyLostServerIsReplacedWhenEndpointsFail(t *testing.T) {
	for about, failedAt := range map[string]time.Duration{"at once": 0, "later": 20 * time.Second, "much later": 4 * time.Minute} {
		t.Run(about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := startQuiet(t, serveCatalogue)
				if q.cut(); failedAt > quietFor {
					q.jam()
				}
				q.set(2)
				sleep(failedAt)
				EndpointsFailed(q.target)
				sleep(max(0, quietFor-failedAt) - 1)
				q.wantStreams(1, 1)
				sleep(quietJitter + 1)
				expect(t, "a", q.a.take(), "a:2")
				expectOutages(t, "a", q.a)
				q.set(3)
				expect(t, "a", q.a.take(), "a:3")
				sleep(time.Hour)
			})
		})
	}
}

// The client must not open a second stream while no endpoint fails, or if a response arrives soon
// after an endpoint has failed.
func TestResponseCancelsSecondStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := startQuiet(t, serveCatalogue)
		sleep(time.Hour)
		q.wantStreams(1, 1)
		q.set(2)
		EndpointsFailed(q.target)
		sleep(quietFor - 1)
		q.set(3)
		sleep(time.Hour)
		expect(t, "a", q.a.take(), "a:2", "a:3")
		q.wantStreams(1, 1)
		q.stop()
	})
}

// A working server has no updates while an endpoint keeps failing. The client may open a second
// stream at most once in 5 minutes. The endpoints must stay in use, and no outage may be reported.
func TestSecondStreamsToWorkingServerAreRare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := startQuiet(t, serveCatalogue)
		sleep(time.Hour)
		for range 600 {
			for range 300 {
				EndpointsFailed(q.target)
			}
			sleep(time.Second)
		}
		expect(t, "a", q.a.take())
		expectOutages(t, "a", q.a)
		if got := q.m.server.Streams(); got < 3 || got > 4 {
			t.Errorf("the server saw %d streams in 10 minutes, want 3 or 4", got)
		}
		q.wantStreams(1, q.m.server.Streams())
		q.set(2)
		expect(t, "a", q.a.take(), "a:2")
		q.stop()
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

// No usable response arrives on a second stream. The first stream must stay in use.
func TestSecondStreamWithoutResponse(t *testing.T) {
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
				sleep(time.Minute)
				EndpointsFailed(q.target)
				sleep(quietJitter + missingAfter + time.Second)
				q.wantStreams(1, 2)
				q.set(2)
				expect(t, "a", q.a.take(), "a:2")
				expectOutages(t, "a", q.a)
				q.stop()
			})
		})
	}
}
