package adsclient

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

type keeper struct {
	notes
	last *Resource
}

func (k *keeper) Resource(m *Resource, version string) {
	k.notes.Resource(m, version)
	k.last = m
}

func (m *manager) keep(t *testing.T, want string) (*keeper, func()) {
	k := new(keeper)
	cancel := Watch(m.target(), Endpoints, "a", k, nil)
	expect(t, "a", k.take(), want)
	return k, cancel
}

func TestALaterWatcherGetsTheSameMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		catalogue := adstest.NewCatalogue(adstest.Cluster("a", "10.0.0.1:1"))
		m := startManager(t, catalogue.Serve)
		before := reads.Load()
		defer func() {
			if n := reads.Load() - before; n != 2 {
				t.Errorf("the resource was read %d times, want once per version", n)
			}
		}()
		first, cancel := m.keep(t, "a:1")
		defer cancel()
		for range 3 {
			later, cancel := m.keep(t, "a:1")
			defer cancel()
			if later.last != first.last {
				t.Error("a later watcher has its own message")
			}
		}
		catalogue.Set(adstest.Cluster("a", "10.0.0.1:1", "10.0.0.2:1"))
		expect(t, "a", first.take(), "a:2")
		later, cancel := m.keep(t, "a:2")
		defer cancel()
		if later.last != first.last {
			t.Error("a later watcher has its own message after an update")
		}
	})
}

// A message that no watcher keeps must be freed. For the next watcher, it must be decoded again.
func TestAMessageThatNobodyHasIsDecodedAgain(t *testing.T) {
	m := startManager(t, adstest.NewCatalogue(adstest.Cluster("a", "10.0.0.1:1")).Serve)
	came := func(w *waiter) *Resource {
		t.Helper()
		select {
		case m := <-w.came:
			return m
		case <-time.After(30 * time.Second):
			t.Fatal("no resource came")
			return nil
		}
	}
	first := &waiter{came: make(chan *Resource, 1)}
	defer Watch(m.target(), Endpoints, "a", first, nil)()
	gone := make(chan struct{})
	func() {
		runtime.AddCleanup(came(first).Read.(*endpointv3.ClusterLoadAssignment), func(int) { close(gone) }, 0)
	}()
	for deadline := time.Now().Add(30 * time.Second); ; {
		runtime.GC()
		select {
		case <-gone:
		case <-time.After(10 * time.Millisecond):
			if time.Now().Before(deadline) {
				continue
			}
			t.Fatal("the message is still in memory")
		}
		break
	}
	next := &waiter{came: make(chan *Resource, 1)}
	defer Watch(m.target(), Endpoints, "a", next, nil)()
	if got := Endpoints.nameOf(came(next).Read.(proto.Message)); got != "a" {
		t.Errorf("the next watcher has %q, want the resource", got)
	}
}

type waiter struct {
	notes
	came chan *Resource
}

func (w *waiter) Resource(m *Resource, _ string) { w.came <- m }
