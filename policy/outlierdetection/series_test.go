package outlierdetection

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/lb/stateattr"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

// A control plane may send any number of new names. Only the first names may get their own metric
// series.
func TestNumberOfSeriesIsLimited(t *testing.T) {
	inBubble(t, func(h *harness) {
		s := &lbtest.Recorder{}
		h.cc.Recorder = s
		config := configOf(consecutiveConfig(), h.builder.name)
		for i := range 1000 {
			state := resolver.State{Endpoints: endpointsOf("a", "b")}
			state = stateattr.SetLabels(state, stateattr.Labels{Priority: fmt.Sprint("p", i), Service: fmt.Sprint("shop", i)})
			if err := h.policy.UpdateClientConnState(balancer.ClientConnState{BalancerConfig: config, ResolverState: state}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if i == 0 {
				for _, conn := range h.cc.LiveSubConns() {
					h.ready(conn)
				}
			}
			h.fail("a")
			synctest.Wait()
			time.Sleep(time.Hour)
		}
		seen := s.Counts()
		if len(seen) > 500 {
			t.Errorf("%d series, want at most 500", len(seen))
		}
		for i := range 5 {
			key := fmt.Sprintf("understudy.outlier_detection.ejections_enforced :/// p%d consecutive_failures shop%d", i, i)
			if seen[key] == 0 {
				t.Errorf("%s is not counted", key)
			}
		}
	})
}
