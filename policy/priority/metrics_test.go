package priority

import (
	"maps"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

// The gauge must count each channel under its priority in use, or under "none" if no priority can
// take calls.
func TestPriorityInUseIsExported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics := &lbtest.Recorder{}
		wantInUse := func(want map[string]int64) {
			t.Helper()
			synctest.Wait()
			got := metrics.Export()
			maps.DeleteFunc(got, func(key string, _ int64) bool { return !strings.HasPrefix(key, "understudy.priority.in_use ") })
			full := make(map[string]int64)
			for priority, n := range want {
				full["understudy.priority.in_use lbtest:///target "+priority] = n
			}
			if !maps.Equal(got, full) {
				t.Errorf("exported %v, want %v", got, full)
			}
		}
		one, two := newRecorder(), newRecorder()
		one.Recorder, two.Recorder = metrics, metrics
		one.Update(update("p0", "p1"))
		wantInUse(map[string]int64{"p0": 1})
		two.Update(update("p0", "p1"))
		wantInUse(map[string]int64{"p0": 2})
		one.Report("p0", failed)
		wantInUse(map[string]int64{"p0": 1, "p1": 1})
		one.Report("p1", failed)
		wantInUse(map[string]int64{"p0": 1, "none": 1})
		one.Update(update("new", "p0", "p1"))
		two.Report("p0", ready)
		one.Report("new", ready)
		wantInUse(map[string]int64{"p0 new": 1, "p0": 1})
		one.Close()
		wantInUse(map[string]int64{"p0": 1})
		two.Close()
		wantInUse(map[string]int64{})
	})
}
