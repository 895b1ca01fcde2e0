package outlierdetection

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	estats "google.golang.org/grpc/experimental/stats"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/stateattr"
)

type series struct {
	estats.UnimplementedMetricsRecorder
	seen map[string]int64
}

func (s *series) RecordInt64Count(_ *estats.Int64CountHandle, n int64, labels ...string) {
	s.seen[fmt.Sprintf("%q", labels[1:])] += n
}

// A control plane may use any number of names, but only the first have their own metric series.
func TestPlacesWithoutEndTakeFewSeries(t *testing.T) {
	inBubble(t, func(h *harness) {
		s := &series{seen: map[string]int64{}}
		h.cc.Recorder = s
		config := given(consecutive(), h.builder.name)
		for i := range 1000 {
			state := resolver.State{Endpoints: endpointsOf("a", "b")}
			state = stateattr.SetLabels(state, stateattr.Labels{Priority: fmt.Sprint("p", i), Service: fmt.Sprint("shop", i)})
			if err := h.policy.UpdateClientConnState(balancer.ClientConnState{BalancerConfig: config, ResolverState: state}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if i == 0 {
				for _, conn := range h.cc.Live() {
					h.ready(conn)
				}
			}
			h.fail("a")
			synctest.Wait()
			time.Sleep(time.Hour) // the endpoint is no longer ejected
		}
		if len(s.seen) > 500 {
			t.Errorf("%d series, want at most 500", len(s.seen))
		}
		for i := range 5 {
			key := fmt.Sprintf("%q", []string{fmt.Sprint("p", i), "consecutive_failures", fmt.Sprint("shop", i)})
			if s.seen[key] == 0 {
				t.Errorf("%s is not counted: %v", key, s.seen)
			}
		}
	})
}
