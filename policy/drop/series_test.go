package drop

import (
	"fmt"
	"net/url"
	"testing"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"
)

// A control plane may send any number of new names for categories. Only the first names may get
// their own metric series.
func TestNumberOfSeriesIsLimited(t *testing.T) {
	inBubble(t, func(t *testing.T, h *harness) {
		h.policy.Close()
		target := resolver.Target{URL: url.URL{Scheme: "lbtest", Path: "/" + t.Name()}}
		h.policy = newBuilder("drop").Build(h.cc, balancer.BuildOptions{Target: target})
		for i := range 10_000 {
			h.update(fmt.Sprintf(`[{"category": "c%d", "requestsPerMillion": 1000000}]`, i))
			h.report(connectivity.Ready, nil)
			if _, err := h.cc.State().Picker.Pick(balancer.PickInfo{}); err == nil {
				t.Fatal("a call was not dropped")
			}
		}
		counts := h.recorder.Counts()
		if n := len(counts); n > 1000 {
			t.Errorf("%d series, want at most 1000", n)
		}
		name := "understudy.drop.dropped " + target.String()
		for i := range 5 {
			if got := counts[fmt.Sprintf("%s  c%d ", name, i)]; got != 1 {
				t.Errorf("%d calls dropped by c%d are counted, want 1", got, i)
			}
		}
		sum := int64(0)
		for _, n := range counts {
			sum += n
		}
		if sum != 10_000 {
			t.Errorf("%d dropped calls are counted, want 10000", sum)
		}
	})
}
