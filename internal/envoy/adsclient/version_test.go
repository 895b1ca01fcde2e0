package adsclient

import (
	"testing"
	"testing/synctest"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

// An update of two resources is rejected. Rejected must be called for the watcher that already
// has a valid resource, and Unknown for the watcher that has none.
func TestRejectedResourceIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := startManager(t, func(s *adstest.Stream) error {
			s.Recv()
			bad, worse := adstest.Cluster("a", "10.0.0.1:1"), adstest.Cluster("b", "10.0.0.1:1")
			bad.Endpoints[0].Priority, worse.Endpoints[0].Priority = 7, 7
			s.Respond("1", "n1", adstest.Cluster("a", "10.0.0.1:1"))
			s.Recv()
			s.Recv()
			s.Respond("2", "n2", bad, worse)
			return s.Drain()
		})
		a, _ := m.watch("a")
		expect(t, "a", a.take(), "a:1")
		b, _ := m.watch("b")
		expect(t, "b", b.take(), `no endpoints of cluster "b" from passthrough:///TestRejectedResourceIsReported: `)
		expect(t, "a", a.take())
		expect(t, "a", a.rejected, `eds: rejected the endpoints of cluster "a" from passthrough:///TestRejectedResourceIsReported: `)
		expect(t, "b", b.rejected)
	})
}
