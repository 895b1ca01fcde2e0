package eds

import (
	"runtime"
	"testing"
	"time"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

// A closed channel must be garbage-collected.
func TestClosedChannelIsCollected(t *testing.T) {
	for name, path := range map[string]string{"endpoints": "/near", "clusters": "/shop?cds=true", "names": "/names?cds=true"} {
		t.Run(name, func(t *testing.T) {
			catalogue := adstest.NewCatalogue(adstest.Aggregate("shop", "near"), adstest.EDS("near"), adstest.Cluster("near", "10.1.0.1:1"),
				adstest.Aggregate("names", "near", "far"), adstest.LogicalDNS("far", "localhost", 1))
			address := serve(t, catalogue.Serve)
			collected := make(chan struct{})
			func() {
				c := newChannel()
				r, err := given.Builder(Scheme).Build(target(t, "eds://"+address+path), c, resolver.BuildOptions{})
				if err != nil {
					t.Fatal(err)
				}
				wait(t, "state", c.states)
				r.Close()
				runtime.AddCleanup(c, func(int) { close(collected) }, 0)
			}()
			for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
				runtime.GC()
				select {
				case <-collected:
					return
				case <-time.After(10 * time.Millisecond):
				}
			}
			t.Error("the closed channel is still in memory")
		})
	}
}
