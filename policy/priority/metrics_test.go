package priority

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

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

// Refused calls are counted under the lowest priority that is READY.
func TestShedCallsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics, p := &lbtest.Recorder{}, newStubbed(t, nil)
		p.cc.Recorder = metrics
		if err := p.update(resolver.State{}, `"overflow": true, "warmStandby": 2,`, "a", "b", "c"); err != nil {
			t.Fatal(err)
		}
		p.report("a", connectivity.Ready, nil)
		p.report("b", connectivity.Ready, nil)
		picker := p.cc.State().Picker.(*offerPicker)
		for i := range picker.offers {
			cut(picker.offers[i])
		}
		refused := int64(0)
		for range 1000 {
			if _, err := picker.Pick(balancer.PickInfo{}); errors.Is(err, errShed) {
				refused++
			}
		}
		if counted := metrics.Counts()["understudy.shed :/// p1 b"]; refused == 0 || counted != refused {
			t.Errorf("%d calls are refused, counted are %v", refused, metrics.Counts())
		}
		// Calls go to the highest priority that takes more than probes.
		inUse := func() string {
			synctest.Wait()
			for key, n := range metrics.Export() {
				if label, ok := strings.CutPrefix(key, "understudy.priority.in_use :/// "); ok && n == 1 {
					return label
				}
			}
			return ""
		}
		if got := inUse(); got != "p0 a" {
			t.Errorf("in use is %q, want p0", got)
		}
		trip(picker.offers[0])
		if got := inUse(); got != "p1 b" {
			t.Errorf("in use is %q while p0 takes only probes, want p1", got)
		}
	})
}
