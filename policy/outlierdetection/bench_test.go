package outlierdetection

import (
	"context"
	"testing"

	"google.golang.org/grpc/balancer"

	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

// BenchmarkCount compares picks of endpoints whose calls are counted with picks of endpoints whose
// calls are not. The results are in docs/a50.md.
func BenchmarkCount(b *testing.B) {
	uncounted := newBenchmarkSubConn(nil)
	c := lbconfig.New[lbconfig.OutlierDetection]()
	c.ConsecutiveFailuresEjection = lbconfig.New[lbconfig.ConsecutiveFailuresEjection]()
	counted := newBenchmarkSubConn(c)
	info := balancer.DoneInfo{BytesSent: true, BytesReceived: true}
	ctx := context.Background()
	for name, s := range map[string]*subConn{"nothing": uncounted, "counted": counted} {
		picker := s.Picker()
		call := func() {
			result, _ := picker.Pick(balancer.PickInfo{Ctx: ctx})
			if result.Done != nil {
				result.Done(info)
			}
		}
		b.Run(name+"/alone", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				call()
			}
		})
		b.Run(name+"/contended", func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					call()
				}
			})
		})
	}
}

func newBenchmarkSubConn(c *lbconfig.OutlierDetection) *subConn {
	s := &subConn{SubConn: &lbtest.SubConn{}, policy: &policy{}}
	if c != nil {
		s.endpoint.Store(&endpoint{})
		s.policy.rules.Store(rulesOf(c))
	}
	return s
}

// The Done function of an endpoint is allocated once. Otherwise, counting allocates only when
// consecutive failures begin or end.
func TestCountingDoesNotAllocate(t *testing.T) {
	c := lbconfig.New[lbconfig.OutlierDetection]()
	c.FailurePercentageEjection = lbconfig.New[lbconfig.FailurePercentageEjection]()
	s := newBenchmarkSubConn(c)
	picker := s.Picker()
	first, _ := picker.Pick(balancer.PickInfo{Ctx: t.Context()})
	answered := balancer.DoneInfo{BytesSent: true, BytesReceived: true}
	failed := doneInfo(14, true, false)
	if n := testing.AllocsPerRun(100, func() {
		result, _ := picker.Pick(balancer.PickInfo{Ctx: t.Context()})
		result.Done(answered)
		result.Done(failed)
		first.Done(answered)
	}); n != 0 {
		t.Errorf("a pick and its counting allocate %v times", n)
	}
	if successes, failures := s.endpoint.Load().Attached.swap(); successes == 0 || failures == 0 {
		t.Error("no calls were counted")
	}
}
