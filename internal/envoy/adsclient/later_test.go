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

type retainingWatcher struct {
	recordingWatcher
	last *Resource
}

func (k *retainingWatcher) Resource(m *Resource, version string) {
	k.recordingWatcher.Resource(m, version)
	k.last = m
}

func (m *manager) watchRetaining(t *testing.T, want, version string) *retainingWatcher {
	k := new(retainingWatcher)
	t.Cleanup(Watch(m.serverConfig(), Endpoints, "a", k, nil))
	if expect(t, "a", k.take(), want); k.version != version {
		t.Errorf("%s has the version %q, want %q", want, k.version, version)
	}
	return k
}

func TestWatchersShareParsedResource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		catalogue := adstest.NewCatalogue(adstest.Cluster("a", "10.0.0.1:1"))
		m := startManager(t, catalogue.Serve)
		before := parsed.Load()
		defer func() {
			if n := parsed.Load() - before; n != 2 {
				t.Errorf("the resource was read %d times, want once per version", n)
			}
		}()
		first := m.watchRetaining(t, "a:1", "1")
		for range 3 {
			later := m.watchRetaining(t, "a:1", "1")
			if later.last != first.last {
				t.Error("a later watcher has its own message")
			}
		}
		catalogue.Set(adstest.Cluster("a", "10.0.0.1:1", "10.0.0.2:1"))
		expect(t, "a", first.take(), "a:2")
		later := m.watchRetaining(t, "a:2", "2")
		if later.last != first.last {
			t.Error("a later watcher has its own message after an update")
		}
	})
}

// A resource that no watcher keeps must be freed. It must be decoded again for the next watcher.
func TestFreedResourceIsDecodedAgain(t *testing.T) {
	m := startManager(t, adstest.NewCatalogue(adstest.Cluster("a", "10.0.0.1:1")).Serve)
	receive := func(w *channelWatcher) *Resource {
		t.Helper()
		select {
		case m := <-w.resources:
			return m
		case <-time.After(30 * time.Second):
			t.Fatal("no resource came")
			return nil
		}
	}
	first := &channelWatcher{resources: make(chan *Resource, 1)}
	defer Watch(m.serverConfig(), Endpoints, "a", first, nil)()
	freed := make(chan struct{})
	func() {
		runtime.AddCleanup(receive(first).Read.(*endpointv3.ClusterLoadAssignment), func(int) { close(freed) }, 0)
	}()
	for deadline := time.Now().Add(30 * time.Second); ; {
		runtime.GC()
		select {
		case <-freed:
		case <-time.After(10 * time.Millisecond):
			if time.Now().Before(deadline) {
				continue
			}
			t.Fatal("the message is still in memory")
		}
		break
	}
	next := &channelWatcher{resources: make(chan *Resource, 1)}
	defer Watch(m.serverConfig(), Endpoints, "a", next, nil)()
	if got := Endpoints.nameOf(receive(next).Read.(proto.Message)); got != "a" {
		t.Errorf("the next watcher has %q, want the resource", got)
	}
}

type channelWatcher struct {
	recordingWatcher
	resources chan *Resource
}

func (w *channelWatcher) Resource(m *Resource, _ string) { w.resources <- m }
