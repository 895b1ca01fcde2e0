package pickfirst

import (
	"testing"
	"testing/synctest"
	"time"

	_ "google.golang.org/grpc/xds" // registers outlier_detection_experimental
)

// gRPC-Go's outlier detection over stock round_robin, with its default interval of
// 10 s and ejection of 30 s: a server whose calls fail is ejected, through the health
// listener, and taken back later; its connection stays.
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

		pass(10 * time.Second) // to an interval in which nothing has succeeded yet
		backends["b"].broken.Store(true)
		wantAnswers(t, cc, "map[:20 a:20 c:20]")
		pass(10 * time.Second)
		wantAnswers(t, cc, "map[a:30 c:30]") // b is ejected

		backends["b"].broken.Store(false)
		wantAnswers(t, cc, "map[a:30 c:30]")
		pass(50 * time.Second)
		wantAnswers(t, cc, "map[a:20 b:20 c:20]")

		for name, b := range backends {
			if n := b.dials.Load(); n != 1 {
				t.Errorf("%s was dialled %d times, want once", name, n)
			}
		}
	})
}
