package priority

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

// A control plane may send any number of new names for priorities. The number of metric series must
// stay limited, and every failover must be counted.
func TestNumberOfSeriesIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics := &lbtest.Recorder{}
		r := newRecorderTo("/" + t.Name())
		r.Recorder = metrics
		for i := range 1000 {
			r.Update(update(fmt.Sprint("n", i)))
			r.Report(fmt.Sprint("n", i), ready)
			synctest.Wait()
		}
		series, sum := 0, int64(0)
		for key, n := range metrics.Export() {
			if strings.HasPrefix(key, "understudy.priority.failovers ") {
				series++
				sum += n
			}
		}
		if series > 500 || sum != 999 {
			t.Errorf("%d failovers in %d series, want 999 in at most 500", sum, series)
		}
		r.Close()
		synctest.Wait()
	})
}
