package priority

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/status"

	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
	"github.com/understudy-lb/understudy/internal/lb/live"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"

	_ "github.com/understudy-lb/understudy/policy/outlierdetection"
	_ "github.com/understudy-lb/understudy/policy/weightedroundrobin"
)

const (
	weighted         = `{"understudy_weighted_round_robin": {}}`
	outlierDetection = `{"understudy_outlier_detection": {"consecutiveFailuresEjection": {}, "childPolicy": [%s]}}`
)

// Most calls at a share of 1 allocate nothing.
func TestUntimedCallsDoNotAllocate(t *testing.T) {
	allowed := 8.0
	if live.Enabled() { // by an earlier test, and the page counts each call
		allowed += 256
	}
	for name, child := range map[string]string{
		"pick_first":        `{"pick_first": {}}`,
		"outlier detection": fmt.Sprintf(outlierDetection, weighted),
	} {
		synctest.Test(t, func(t *testing.T) {
			picker := newReadyTree(t, child, 1, true).picker()
			if n := testing.AllocsPerRun(100, func() { call(t, picker, 256) }); n > allowed {
				t.Errorf("%s: 256 calls, of which one is timed, allocate %v times", name, n)
			}
		})
	}
}

// Outlier detection counts each failed call once: the fifth one ejects. That is so with and without
// a user of shell.Counted below it, and after overflow is turned off.
func TestOutlierDetectionCountsOnce(t *testing.T) {
	for name, leaf := range map[string]string{"weighted": weighted, "round_robin": `{"round_robin": {}}`} {
		for _, overflow := range []bool{true, false} {
			t.Run(fmt.Sprint(name, ", overflow ", overflow), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newReadyTree(t, fmt.Sprintf(outlierDetection, leaf), 10, true)
					r.update(overflow)
					synctest.Wait()
					var bad balancer.SubConn
					failOne := func() bool {
						for range 100 {
							result, err := r.picker().Pick(balancer.PickInfo{Ctx: t.Context()})
							if err != nil {
								t.Fatal(err)
							}
							if bad == nil || result.SubConn == bad {
								bad = result.SubConn
								result.Done(balancer.DoneInfo{Err: status.Error(codes.Unavailable, ""), BytesSent: true})
								return true
							}
							end(result)
						}
						return false
					}
					failures := 0
					for failures < 10 && failOne() {
						failures++
						time.Sleep(20 * time.Millisecond) // until the child has published a new picker
						synctest.Wait()
					}
					if failures != 5 {
						t.Errorf("ejected after %d failures, want 5", failures)
					}
				})
			})
		}
	}
}

// readyTree is a policy with two READY priorities that use so many endpoints each. With overflow,
// one in 256 of its calls is timed.
type readyTree struct {
	cc     *lbtest.ClientConn
	update func(overflow bool)
}

func (r *readyTree) picker() balancer.Picker { return r.cc.State().Picker }

func newReadyTree(t *testing.T, child string, endpoints int, overflow bool) *readyTree {
	r, builder := &readyTree{cc: &lbtest.ClientConn{}}, balancer.Get(Name)
	published := make(chan struct{}, 1000)
	r.cc.OnUpdate(func(balancer.State) { published <- struct{}{} })
	policy := builder.Build(r.cc, balancer.BuildOptions{})
	t.Cleanup(policy.Close)
	state := resolver.State{}
	for _, name := range []string{"a", "b"} {
		for i := range endpoints {
			e := resolver.Endpoint{Addresses: []resolver.Address{{Addr: fmt.Sprint(name, i)}}}
			state.Endpoints = append(state.Endpoints, hierarchy.Set(e, name))
		}
	}
	r.update = func(overflow bool) {
		parsed, err := builder.(balancer.ConfigParser).ParseConfig(fmt.Appendf(nil,
			`{"overflow": %v, "warmStandby": 1, "priorities": ["a", "b"], "children": {"a": {"config": [%s]}, "b": {"config": [%s]}}}`, overflow, child, child))
		if err != nil {
			t.Fatal(err)
		}
		if err := policy.UpdateClientConnState(balancer.ClientConnState{ResolverState: state, BalancerConfig: parsed}); err != nil {
			t.Fatal(err)
		}
	}
	r.update(overflow)
	isReady := map[*lbtest.SubConn]bool{}
	for endpointsOf(t, r.picker()) != endpoints {
		for _, sc := range r.cc.SubConns() {
			if !isReady[sc] && sc.Connects() > 0 {
				isReady[sc] = true
				sc.Report(connectivity.Ready, nil)
				sc.ReportHealth(connectivity.Ready, nil)
			}
		}
		<-published
	}
	call(t, r.picker(), 100_000)
	return r
}

// endpointsOf returns how many endpoints a picker uses, or 0 while there is only one priority.
func endpointsOf(t *testing.T, picker balancer.Picker) int {
	if p, ok := picker.(*offerPicker); ok && len(p.offers) < 2 {
		return 0
	}
	used := map[balancer.SubConn]bool{}
	for range 100 {
		if result, err := picker.Pick(balancer.PickInfo{Ctx: t.Context()}); err == nil {
			used[result.SubConn] = true
			end(result)
		}
	}
	return len(used)
}

func call(t *testing.T, picker balancer.Picker, times int) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	for range times {
		result, err := picker.Pick(balancer.PickInfo{Ctx: ctx, FullMethodName: "/a/b"})
		if err != nil {
			t.Fatal(err)
		}
		end(result)
	}
}

func end(result balancer.PickResult) {
	if result.Done != nil {
		result.Done(balancer.DoneInfo{BytesSent: true, BytesReceived: true})
	}
}
