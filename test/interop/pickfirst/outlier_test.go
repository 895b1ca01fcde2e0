package pickfirst

import (
	"testing"
	"testing/synctest"
	"time"

	_ "google.golang.org/grpc/xds" // registers outlier_detection_experimental
)

// gRPC-Go's outlier detection over round_robin must eject a server whose calls fail, and use it
// again later. The connection must stay open, because the ejection is reported to the health
// listener. The default interval is 10 s, and the default ejection time is 30 s.
func TestOutlierDetection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backends := startBackends(t, "a", "b", "c")
		cc := dial(t, backends, `{"loadBalancingConfig": [{"outlier_detection_experimental": {
			"maxEjectionPercent": 50,
			"failurePercentageEjection": {"enforcementPercentage": 100, "minimumHosts": 3, "requestVolume": 10},
			"childPolicy": [{"round_robin": {}}]}}]}`)
		callAll(cc, 1)
		synctest.Wait()
		wantAnswers(t, cc, "map[a:20 b:20 c:20]")

		advance(10 * time.Second) // begins a new interval, in which no call to b succeeds
		backends["b"].broken.Store(true)
		wantAnswers(t, cc, "map[:20 a:20 c:20]")
		advance(10 * time.Second)
		wantAnswers(t, cc, "map[a:30 c:30]")

		backends["b"].broken.Store(false)
		wantAnswers(t, cc, "map[a:30 c:30]")
		advance(50 * time.Second)
		wantAnswers(t, cc, "map[a:20 b:20 c:20]")

		for name, b := range backends {
			if n := b.dials.Load(); n != 1 {
				t.Errorf("%s has %d connections, want 1", name, n)
			}
		}
	})
}
