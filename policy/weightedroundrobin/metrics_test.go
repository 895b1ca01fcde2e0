package weightedroundrobin

import (
	"maps"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/lb/stateattr"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

type metered struct {
	*harness
	recorder *lbtest.Recorder
}

func newMetered(t *testing.T, recorder *lbtest.Recorder) *metered {
	cc := &lbtest.ClientConn{Recorder: recorder}
	opts := balancer.BuildOptions{Target: resolver.Target{URL: url.URL{Scheme: "lbtest", Path: "/" + t.Name()}}}
	return &metered{&harness{t: t, cc: cc, policy: newBuilder("wrr").Build(cc, opts)}, recorder}
}

func (m *metered) updateLabels(priority, list string) {
	m.t.Helper()
	state := resolver.State{Endpoints: endpoints(list)}
	if err := m.updateWith("", stateattr.SetLabels(state, stateattr.Labels{Priority: priority, Locality: "us-east", Service: "shop"})); err != nil {
		m.t.Fatal(err)
	}
}

func (m *metered) wantMetrics(want map[string]int64) {
	m.t.Helper()
	full := make(map[string]int64)
	for key, n := range want {
		name, rest, _ := strings.Cut(key, " ")
		if name == "understudy.endpoints" && !strings.Contains(rest, "TRANSIENT_FAILURE") {
			rest += " " // no failure
		}
		full[name+" lbtest:///"+m.t.Name()+" "+rest+" shop"] = n
	}
	if got := m.recorder.Export(); !maps.Equal(got, full) {
		m.t.Errorf("exported\n%v\nwant\n%v", got, full)
	}
	synctest.Wait()
}

func TestEndpointsAreExportedByState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMetered(t, &lbtest.Recorder{})
		m.updateLabels("p0", "a b c")
		m.wantMetrics(map[string]int64{"understudy.endpoints p0 us-east CONNECTING": 3})
		m.ready("a", "b")
		m.report(connectivity.TransientFailure, "c")
		m.wantMetrics(map[string]int64{"understudy.endpoints p0 us-east READY": 2, "understudy.endpoints p0 us-east TRANSIENT_FAILURE other": 1})
		m.updateLabels("p1", "a b")
		m.wantMetrics(map[string]int64{"understudy.endpoints p1 us-east READY": 2})

		other := newMetered(t, m.recorder)
		other.updateLabels("p1", "a b c d e")
		m.wantMetrics(map[string]int64{"understudy.endpoints p1 us-east READY": 2, "understudy.endpoints p1 us-east CONNECTING": 5})
		m.policy.Close()
		m.wantMetrics(map[string]int64{"understudy.endpoints p1 us-east CONNECTING": 5})
		other.updateLabels("p0", "a") // endpoints of the other channel in p0; they must not count for this channel
		m.wantMetrics(map[string]int64{"understudy.endpoints p0 us-east CONNECTING": 1})
		other.policy.Close()
		synctest.Wait()
		m.wantMetrics(map[string]int64{})
	})
}

func TestPicksAreExported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMetered(t, &lbtest.Recorder{})
		m.updateLabels("p0", "a:3 b:1")
		m.ready("a", "b")
		m.picks(50)
		m.wantMetrics(map[string]int64{"understudy.endpoints p0 us-east READY": 2, "understudy.picks p0 us-east": 50})
		old := m.cc.State()
		m.updateLabels("p0", "a:3 b:2")
		m.picks(7)
		lbtest.Pick(old) // a call may still use the previous picker
		m.wantMetrics(map[string]int64{"understudy.endpoints p0 us-east READY": 2, "understudy.picks p0 us-east": 58})
		m.updateLabels("p0", "a")
		m.picks(4)
		m.wantMetrics(map[string]int64{"understudy.endpoints p0 us-east READY": 1, "understudy.picks p0 us-east": 62})
		m.updateLabels("p1", "a")
		m.picks(5)
		want := map[string]int64{"understudy.endpoints p1 us-east READY": 1, "understudy.picks p0 us-east": 62, "understudy.picks p1 us-east": 5}
		m.wantMetrics(want)
		m.picks(1)
		m.policy.Close()
		synctest.Wait()
		delete(want, "understudy.endpoints p1 us-east READY")
		want["understudy.picks p1 us-east"] = 6
		m.wantMetrics(want)
	})
}

func TestPicksOfOneEndpointAreExported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMetered(t, &lbtest.Recorder{})
		m.updateLabels("p0", "a")
		m.ready("a")
		m.picks(3)
		m.wantMetrics(map[string]int64{"understudy.endpoints p0 us-east READY": 1})
		m.picks(4)
		m.wantMetrics(map[string]int64{"understudy.endpoints p0 us-east READY": 1, "understudy.picks p0 us-east": 4})
		next := newMetered(t, m.recorder) // the policy that a failover on the same channel creates
		next.updateLabels("p1", "b")
		next.ready("b")
		next.picks(5)
		m.wantMetrics(map[string]int64{
			"understudy.endpoints p0 us-east READY": 1, "understudy.picks p0 us-east": 4,
			"understudy.endpoints p1 us-east READY": 1, "understudy.picks p1 us-east": 5,
		})
		m.policy.Close()
		next.policy.Close()
	})
}

func TestPicksAreNotCountedWithoutExporter(t *testing.T) {
	run(t, func(h *harness) {
		h.update("", "a")
		h.ready("a")
		h.picks(3)
		if got := h.inner().picker.Picks(); got != 0 {
			t.Errorf("counted %d picks without an exporter", got)
		}
	})
}
