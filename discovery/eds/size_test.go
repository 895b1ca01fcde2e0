package eds

import (
	"errors"
	"fmt"
	"runtime"
	"testing"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

func manyEndpoints(n int) *endpointv3.ClusterLoadAssignment {
	addresses := make([]string, n)
	for i := range addresses {
		addresses[i] = fmt.Sprintf("10.%d.%d.%d:443", i>>16, i>>8&255, i&255)
	}
	return adstest.Cluster("c", addresses...)
}

func heapInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestHundredThousandEndpoints(t *testing.T) {
	const n = 100_000
	cluster := manyEndpoints(n)
	before := heapInUse()
	c := build(t, "eds://"+serve(t, func(s *adstest.Stream) error {
		return errors.Join(s.Respond("1", "n1", cluster), s.Drain())
	})+"/c")
	state := wait(t, "state", c.states)
	if len(state.Endpoints) != n {
		t.Errorf("%d endpoints, want %d", len(state.Endpoints), n)
	}
	used := int64(heapInUse()) - int64(before)
	t.Logf("%d MB for %d endpoints", used>>20, n)
	if used > 200<<20 {
		t.Errorf("%d MB for %d endpoints", used>>20, n)
	}
	runtime.KeepAlive(state)
}
