package share_test

import (
	"testing"
	"time"

	"github.com/understudy-lb/understudy/internal/core/share"
)

// A timed call at a share of 1, among 200 endpoints: its cost does not depend on their number.
func BenchmarkTimedCall(b *testing.B) {
	s := share.New(0, share.Config{})
	endpoints := make([]share.Endpoint, 200)
	b.ReportAllocs()
	for i := range b.N {
		now := time.Duration(i) * time.Millisecond
		if s.Take(now, 0.5) {
			s.End(now+time.Millisecond, s.Begin(now, time.Second, "", &endpoints[i%len(endpoints)]), share.Good)
		}
		_ = s.View()
	}
}
