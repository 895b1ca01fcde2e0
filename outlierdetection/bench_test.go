package outlierdetection

import (
	"testing"

	"google.golang.org/grpc/balancer"

	"github.com/understudy-lb/understudy/internal/lbconfig"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

// BenchmarkCount is what it costs that a call is counted, beside what there is without:
// alone, and from all cores at once on one endpoint. docs/a50.md has the figures.
func BenchmarkCount(b *testing.B) {
	s := &subConn{SubConn: &lbtest.SubConn{}, policy: &policy{}}
	s.endpoint.Store(&endpoint{})
	c := lbconfig.NewOutlierDetection()
	c.ConsecutiveFailuresEjection = lbconfig.NewConsecutiveFailuresEjection()
	s.policy.rules.Store(rulesOf(c))
	counted := s.PickResult()
	s.policy.rules.Store(nil)
	uncounted := s.PickResult()
	s.policy.rules.Store(rulesOf(c))
	info := balancer.DoneInfo{BytesSent: true, BytesReceived: true}
	for name, result := range map[string]balancer.PickResult{"nothing": uncounted, "counted": counted} {
		call := func() {
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

// Counting allocates nothing, whatever the answer: there is one function an endpoint.
func TestCountingAllocatesNothing(t *testing.T) {
	s := &subConn{SubConn: &lbtest.SubConn{}, policy: &policy{}}
	s.endpoint.Store(&endpoint{})
	c := lbconfig.NewOutlierDetection()
	c.FailurePercentageEjection = lbconfig.NewFailurePercentageEjection()
	s.policy.rules.Store(rulesOf(c))
	first := s.PickResult()
	answered := balancer.DoneInfo{BytesSent: true, BytesReceived: true}
	failed := ended(14, true, false)
	if n := testing.AllocsPerRun(100, func() {
		result := s.PickResult()
		result.Done(answered)
		result.Done(failed)
		first.Done(answered)
	}); n != 0 {
		t.Errorf("a pick and what counts it allocate %v times", n)
	}
	if successes, failures := s.endpoint.Load().Shell.swap(); successes == 0 || failures == 0 {
		t.Error("nothing was counted")
	}
}
