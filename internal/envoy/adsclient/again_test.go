package adsclient

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/understudy-lb/understudy/internal/core/ads"
	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

type responder interface {
	Recv() (*discoveryv3.DiscoveryRequest, error)
	Respond(version, nonce string, clusters ...*endpointv3.ClusterLoadAssignment) error
}

// frugal is a server that does only what the protocol requires. It ignores requests with an old
// nonce, and sends a resource only if the previous request did not contain its name. longest is set
// to the largest number of names in a request.
func frugal(s responder, longest *int) error {
	var known []string
	nonce := ""
	for {
		r, err := s.Recv()
		if err != nil {
			return err
		}
		if r.GetResponseNonce() != nonce {
			continue
		}
		for _, name := range r.GetResourceNames() {
			if slices.Contains(known, name) {
				continue
			}
			nonce += "n"
			if err := s.Respond("1", nonce, adstest.Cluster(name, "10.0.0.1:1")); err != nil {
				return err
			}
		}
		known = r.GetResourceNames()
		*longest = max(*longest, len(known))
	}
}

// A watcher cancels its subscription to a resource, and a new watcher subscribes. The server must
// send the resource again, even if it reads so slowly that both requests are merged into one.
func TestResubscribedClusterIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads := make(chan struct{}, 1)
		reads <- struct{}{}
		m := startManager(t, func(s *adstest.Stream) error {
			return frugal(&slowReader{s, reads}, new(int))
		})
		longName := strings.Repeat("b", 100_000) // fills the stream's flow-control window, so that later requests must wait
		b, _ := m.watch(longName)
		expect(t, "b", b.take(), longName+":1")
		a, cancelA := m.watch("a")
		reads <- struct{}{}
		reads <- struct{}{}
		expect(t, "a", a.take(), "a:1")
		m.watch("c")
		synctest.Wait()
		cancelA()
		again, _ := m.watch("a")
		close(reads)
		sleep(missingAfter)
		expect(t, "a", again.take(), "a:1")
		if got := m.server.Streams(); got != 1 {
			t.Errorf("%d streams, want 1", got)
		}
	})
}

type slowReader struct {
	*adstest.Stream
	reads <-chan struct{}
}

func (s *slowReader) Recv() (*discoveryv3.DiscoveryRequest, error) {
	<-s.reads
	return s.Stream.Recv()
}

// The client must open a new stream after about 100 cancelled subscriptions, so that the server
// forgets them.
func TestStreamIsRenewedAfterManyUnsubscriptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		longest := 0
		m := startManager(t, func(s *adstest.Stream) error { return frugal(s, &longest) })
		stays, _ := m.watch("stays")
		expect(t, "stays", stays.take(), "stays:1")
		for i := range 500 {
			name := string(rune('A' + i))
			watcher, cancel := m.watch(name)
			sleep(missingAfter)
			expect(t, name, watcher.take(), name+":1")
			cancel()
		}
		expect(t, "stays", stays.take())
		if streams := m.server.Streams(); longest > 110 || streams < 4 || streams > 6 {
			t.Errorf("up to %d clusters on %d streams, want about 100 on 5", longest, streams)
		}
	})
}

// A request with other names replaces a NACK that has not been sent yet. This request must contain
// the reason of the NACK, and later requests must not.
func TestNACKReasonSurvivesSubscriptionChange(t *testing.T) {
	subs, boxes := ads.New(), newMailboxes()
	box := boxes[0]
	take := func() *ads.Request {
		_, r := boxes.take(t.Context())
		return r
	}
	put := func(a ads.Actions) {
		if a.Send != nil {
			box.put(a.Send)
		}
	}
	put(subs.Watch("a", false))
	put(subs.Opened())
	take()
	bad := []ads.Resource{{Name: "a", Err: errors.New("weight is 0")}}
	put(subs.Received("1", "n", bad))
	put(subs.Watch("b", false))
	put(subs.Watch("c", false))
	got := take()
	if !slices.Equal(got.Names, []string{"a", "b", "c"}) || got.Nonce != "n" || got.Reject != "a: weight is 0" {
		t.Errorf("sent %+v, want all three names and the reason", got)
	}
	put(subs.Watch("d", false))
	if got := take(); got.Reject != "" {
		t.Errorf("the reason was sent twice: %+v", got)
	}
	// A later valid response must be acknowledged, even if it has the same nonce.
	put(subs.Received("1", "n", bad))
	put(subs.Received("1", "n", []ads.Resource{{Name: "a"}}))
	if got := take(); got.Reject != "" {
		t.Errorf("a good response was rejected: %+v", got)
	}
}
