package outlierdetection

import (
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/connectivity"
)

// One endpoint is ejected, and the other endpoint loses its connection repeatedly. While the other
// endpoint is in backoff, the ejected endpoint must get the calls.
func TestEjectedEndpointGetsCallsWhileOtherReconnects(t *testing.T) {
	inTree(t, "understudy_weighted_round_robin", func(h *tree) {
		h.update(overflowConfig(), endpointsOf("a", "b")...)
		h.want(h.calls(20, "a"), "map[a:5 b:15]")
		b := h.cc.SubConn("b")
		for range 4 { // the second short connection in a row counts as a failure
			b.Report(connectivity.Idle, nil)
			synctest.Wait()
			if h.cc.State().ConnectivityState == connectivity.TransientFailure {
				t.Fatal("calls fail although the ejected endpoint is connected")
			}
			if h.cc.State().ConnectivityState == connectivity.Ready {
				h.want(h.calls(4, ""), "map[a:4]")
				return
			}
			b.Report(connectivity.Connecting, nil)
			b.Report(connectivity.Ready, nil)
			synctest.Wait()
			b.ReportHealth(connectivity.Ready, nil)
			time.Sleep(10 * time.Millisecond)
			synctest.Wait()
		}
		t.Error("the ejected endpoint received no calls while the other one waited to reconnect")
	})
}
