package weightedroundrobin

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/lb/stateattr"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

// A control plane may send any number of new names for priorities and localities. Only the first
// names may get their own metric series, but every pick must be counted.
func TestNumberOfSeriesIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMetered(t, &lbtest.Recorder{})
		defer m.policy.Close()
		for i := range 10_000 {
			labelValues := stateattr.Labels{Priority: fmt.Sprint("p0 ", i), Locality: fmt.Sprint("zone", i), Service: fmt.Sprint("shop", i)}
			if err := m.updateWith("", stateattr.SetLabels(resolver.State{Endpoints: endpoints("a b")}, labelValues)); err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				m.ready("a", "b")
				m.recorder.Export()
			}
			m.picks(1)
		}
		series, sum, all := 0, int64(0), m.recorder.Export()
		for key, n := range all {
			if strings.HasPrefix(key, "understudy.picks ") {
				series++
				sum += n
			}
		}
		if series > 1000 || sum != 10_000 {
			t.Errorf("%d picks in %d series, want 10000 in at most 1000", sum, series)
		}
		for i := range 5 {
			if got := all[fmt.Sprintf("understudy.picks lbtest:///%s p0 %d zone%d shop%d", t.Name(), i, i, i)]; got != 1 {
				t.Errorf("%d picks are counted for label set %d, want 1", got, i)
			}
		}
		if got := all["understudy.endpoints lbtest:///"+t.Name()+" other other READY  other"]; got != 2 {
			t.Errorf("%d READY endpoints in the series for other labels, want 2: %v", got, all)
		}
	})
}
