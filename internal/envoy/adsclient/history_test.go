package adsclient

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

// Connections and endpoints fail at random. No resource may be reported as unknown, at most one
// stream may be in use at any time, and the final state of the resource must arrive.
func TestSecondStreamsUnderRandomFailures(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 0))
				var healed atomic.Bool
				q := startQuiet(t, func(stream int) adstest.Script {
					if stream == 1 || healed.Load() || (stream+int(seed))%3 > 0 {
						return nil
					}
					return func(s *adstest.Stream) error { return goAway(s, 20*time.Second) }
				})
				cancelB := func() {}
				for range 60 {
					switch random.IntN(6) {
					case 0:
						q.cut()
					case 1:
						q.set(1 + random.IntN(3))
					case 2, 3:
						EndpointsFailed(q.target)
					case 4:
						cancelB()
						cancelB = Watch(q.target, Endpoints, "b", new(recordingWatcher), nil)
					case 5:
						q.catalogue.Set(adstest.Cluster("b", "10.0.0.1:1"))
					}
					sleep(time.Duration(random.Int64N(int64(40 * time.Second))))
					if got := q.gauge.value.Load(); got < 0 || got > 1 {
						t.Errorf("%d streams are in use", got)
					}
				}
				healed.Store(true)
				q.set(1)
				q.set(2)
				for range 8 {
					EndpointsFailed(q.target)
					sleep(2 * time.Minute)
				}
				received := append([]string{"nothing"}, q.a.take()...)
				if last := received[len(received)-1]; last != "a:2" || strings.Contains(strings.Join(received, ""), "no endpoints") {
					t.Errorf("received %q, want no loss and a:2 in the end", received)
				}
				cancelB()
				q.cancel()
				synctest.Wait()
				if got := q.gauge.value.Load(); got != 0 {
					t.Errorf("%d streams are still in use", got)
				}
			})
		})
	}
}
