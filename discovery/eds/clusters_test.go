package eds

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/envoy/adsclient"
	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

// The clusters are those of the example in gRFC A37: endpoints from EDS come first, and DNS is the
// last resort. The channel must follow changes of the clusters.
func TestClusters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestNetwork(t)
		catalogue := adstest.NewCatalogue(
			adstest.Aggregate("shop", "near", "rest"), adstest.EDS("near"), adstest.Cluster("near", "10.1.0.1:1"),
			adstest.Aggregate("rest", "near", "backup"), adstest.LogicalDNS("backup", "backup.example.com", 443),
		)
		s.start(server, catalogue.Serve)
		s.openChannel(s.builder(), "eds://"+server+"/shop?cds=true")
		s.expect(`10.1.0.1:1 near/child0, 10.9.0.1:443 backup of ["near/child0","backup"]`)
		catalogue.Set(adstest.Cluster("near", "10.1.0.2:1"))
		s.expect(`10.1.0.2:1 near/child0, 10.9.0.1:443 backup of ["near/child0","backup"]`)
		catalogue.Set(adstest.Aggregate("shop", "new", "near", "rest"), adstest.EDS("new"))
		s.expect("")
		catalogue.Set(adstest.Cluster("new", "10.3.0.1:1"))
		s.expect(`10.3.0.1:1 new/child0, 10.1.0.2:1 near/child0, 10.9.0.1:443 backup of ["new/child0","near/child0","backup"]`)
		catalogue.Set(adstest.EDS("shop"), adstest.Cluster("shop", "10.4.0.1:1"))
		s.expect(`10.4.0.1:1 shop/child0 of ["shop/child0"]`)
		if got := fmt.Sprint(s.lookups); got != "[backup.example.com:443]" {
			t.Errorf("looked up %s, want the backup once", got)
		}
	})
}

// A cluster without endpoints is removed from the aggregate and later added again in place of
// another cluster. The replaced cluster must stay in use until the new cluster has endpoints. Calls
// must not go to the last resort.
func TestClusterWithoutEndpointsIsAddedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestNetwork(t)
		catalogue := adstest.NewCatalogue(
			adstest.Aggregate("shop", "near", "backup"), adstest.LogicalDNS("backup", "backup.example.com", 443),
			adstest.EDS("near"), adstest.Cluster("near", "10.1.0.1:1"), adstest.EDS("new"),
		)
		s.start(server, catalogue.Serve)
		s.openChannel(s.builder(), "eds://"+server+"/shop?cds=true")
		const near = `10.1.0.1:1 near/child0, 10.9.0.1:443 backup of ["near/child0","backup"]`
		s.expect(near)
		catalogue.Set(adstest.Aggregate("shop", "near", "new", "backup"))
		time.Sleep(time.Minute)
		s.updates()
		catalogue.Set(adstest.Aggregate("shop", "near", "backup"))
		s.expect(near)
		catalogue.Set(adstest.Aggregate("shop", "new", "backup"))
		s.expect("")
		catalogue.Set(adstest.Cluster("new", "10.3.0.1:1"))
		s.expect(`10.3.0.1:1 new/child0, 10.9.0.1:443 backup of ["new/child0","backup"]`)
	})
}

// The outlier detection of a cluster must apply to the cluster's priorities (gRFC A50). If an
// update makes it invalid, the last valid outlier detection must stay in use.
func TestClusterOutlierDetection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestNetwork(t)
		near := func(seconds int64) *clusterv3.Cluster {
			c := adstest.EDS("near")
			c.OutlierDetection = &clusterv3.OutlierDetection{Interval: &durationpb.Duration{Seconds: seconds}}
			return c
		}
		catalogue := adstest.NewCatalogue(adstest.Aggregate("shop", "near", "far"), near(1), adstest.Cluster("near", "10.1.0.1:1"), adstest.EDS("far"), adstest.Cluster("far", "10.2.0.1:1"))
		s.start(server, catalogue.Serve)
		s.openChannel(s.builder(), "eds://"+server+"/shop?cds=true")
		const both = `10.1.0.1:1 near/child0, 10.2.0.1:1 far/child0 of ["near/child0","far/child0"]`
		expect := func(nearInterval string) {
			t.Helper()
			s.expect(both)
			for child, interval := range map[string]string{"near": nearInterval, "far": "10s"} {
				if want := `"` + child + `/child0":{"config":[{"understudy_outlier_detection":{"interval":"` + interval + `"`; !strings.Contains(s.cc.config.Load().(string), want) {
					t.Errorf("config %s does not contain %s", s.cc.config.Load().(string), want)
				}
			}
		}
		expect("1s")
		catalogue.Set(near(2))
		expect("2s")
		catalogue.Set(near(-3))
		s.expect("")
		catalogue.Set(near(4))
		expect("4s")
	})
}

// The endpoints of a cluster that is not an aggregate may have another name (service_name).
func TestClusterServiceName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestNetwork(t)
		cluster := adstest.EDS("shop")
		cluster.EdsClusterConfig.ServiceName = "service"
		s.start(server, adstest.NewCatalogue(cluster, adstest.Cluster("service", "10.1.0.1:1")).Serve)
		s.openChannel(s.builder(), "eds://"+server+"/shop?cds=true")
		s.expect(`10.1.0.1:1 shop/child0 of ["shop/child0"]`)
	})
}

// A cluster that cannot be used must become a priority without endpoints. Its error must contain
// the path from the target's cluster to this cluster.
func TestUnusableClusters(t *testing.T) {
	maglev := adstest.EDS("bad")
	maglev.LbPolicy = clusterv3.Cluster_MAGLEV
	for about, test := range map[string]struct {
		clusters []*clusterv3.Cluster
		after    time.Duration
		want     string
	}{
		"itself":  {[]*clusterv3.Cluster{adstest.Aggregate("shop", "shop", "good")}, 0, `cluster "shop" names itself: shop -> shop`},
		"missing": {[]*clusterv3.Cluster{adstest.Aggregate("shop", "nowhere", "good")}, 15 * time.Second, `cluster "nowhere" (named by shop): eds: no cluster "nowhere" from dns:///10.0.0.1:18000: the server has no such resource`},
		"policy":  {[]*clusterv3.Cluster{adstest.Aggregate("shop", "bad", "good"), maglev}, 0, `cluster "bad" (named by shop): eds: no cluster "bad" from dns:///10.0.0.1:18000: lb_policy: lb_policy MAGLEV is not supported`},
		"no endpoints": {[]*clusterv3.Cluster{adstest.Aggregate("shop", "empty", "good"), adstest.EDS("empty")}, 15 * time.Second,
			`eds: no endpoints of cluster "empty" from dns:///10.0.0.1:18000: the server has no such resource`},
	} {
		t.Run(about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newTestNetwork(t)
				catalogue := adstest.NewCatalogue(adstest.EDS("good"), adstest.Cluster("good", "10.1.0.1:1"))
				for _, c := range test.clusters {
					catalogue.Set(c)
				}
				s.start(server, catalogue.Serve)
				before := logged.Count(test.want)
				s.openChannel(s.builder(), "eds://"+server+"/shop?cds=true&failoverTimeout=1h")
				time.Sleep(test.after)
				if got := s.updates(); !strings.HasPrefix(got, "10.1.0.1:1 good/child0 of [") || strings.Contains(got, "\n") {
					t.Errorf("channel saw\n%s\nwant the good cluster behind the bad one", got)
				}
				if got := logged.Count(test.want) - before; got != 1 {
					t.Errorf("%q was logged %d times, want once", test.want, got)
				}
			})
		})
	}
}

// The first update must wait for a slow cluster, but at most for maxDelay.
func TestSlowCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestNetwork(t)
		catalogue := adstest.NewCatalogue(adstest.Aggregate("shop", "good", "slow"), adstest.EDS("good"), adstest.Cluster("good", "10.1.0.1:1"))
		s.start(server, catalogue.Serve)
		s.openChannel(s.builder(), "eds://"+server+"/shop?cds=true")
		time.Sleep(maxDelay - 1)
		s.expect("")
		time.Sleep(time.Nanosecond)
		s.expect(`10.1.0.1:1 good/child0 of ["good/child0"]`)
		catalogue.Set(adstest.EDS("slow"), adstest.Cluster("slow", "10.1.0.2:1"))
		s.expect(`10.1.0.1:1 good/child0, 10.1.0.2:1 slow/child0 of ["good/child0","slow/child0"]`)
	})
}

// If the server becomes unreachable before its last list was passed on, the outage must still be
// reported after the list. Otherwise, the list would end the outage.
func TestOutageIsReportedAfterList(t *testing.T) {
	var reports []string
	r := new(discovery.Receiver).With(discovery.Hooks{
		Mechanisms:  func([]discovery.Mechanism) { reports = append(reports, "list") },
		Unconfirmed: func(err error, _ time.Time) { reports = append(reports, err.Error()) },
	})
	h := clusterSource{source: source{cluster: "shop"}}.newWatch(r)
	needs := h.needs(map[string]adsclient.State{"shop": stateOf(t, adstest.EDS("shop"))})
	h.events.Run(func() { // a busy watch handles the snapshot later
		h.Changed(adsclient.Snapshot{For: needs.For})
		h.Lost(&adsclient.Outage{Err: errors.New("outage"), LastMessage: time.Now()})
	})
	if got := strings.Join(reports, ", "); got != "list, outage" {
		t.Errorf("the reports are %s, want the list before the outage", got)
	}
}

func TestMissingClusters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestNetwork(t)
		s.openChannel(s.builder(), "eds://"+server+"/shop?cds=true")
		if got := s.updates(); !strings.HasPrefix(got, `error eds: no cluster "shop" from dns:///10.0.0.1:18000: `) {
			t.Errorf("channel saw %s", got)
		}
		s.start(server, adstest.NewCatalogue(adstest.Aggregate("shop", "a", "b"), adstest.EDS("a"), adstest.EDS("b")).Serve)
		time.Sleep(20 * time.Second)
		if got := s.updates(); !strings.HasPrefix(got, `error eds: no entry has an address: a: no endpoints of cluster "a" from dns`) && !strings.Contains(got, `a: eds: no endpoints of cluster "a"`) || !strings.Contains(got, `b: eds: no endpoints of cluster "b"`) {
			t.Errorf("channel saw %s, want the errors of both clusters", got)
		}
	})
}

// The first server becomes unreachable in the middle of a change. The channel must never get
// clusters of one server together with endpoints of the other server.
func TestServersAreNeverMixed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestNetwork(t)
		first := adstest.NewCatalogue(adstest.Aggregate("shop", "a", "b"), adstest.EDS("a"), adstest.Cluster("a", "10.1.0.1:1"), adstest.EDS("b"), adstest.Cluster("b", "10.1.0.2:1"))
		secondCatalogue := adstest.NewCatalogue(adstest.Aggregate("shop", "a", "c"), adstest.EDS("a"), adstest.Cluster("a", "10.2.0.1:1"), adstest.EDS("c"))
		s.start(server, first.Serve)
		s.start(second, secondCatalogue.Serve)
		s.openChannel(s.builder(), "eds://"+server+","+second+"/shop?cds=true")
		s.expect(`10.1.0.1:1 a/child0, 10.1.0.2:1 b/child0 of ["a/child0","b/child0"]`)
		first.Set(adstest.Aggregate("shop", "a", "d"))
		synctest.Wait()
		s.stop(server)
		time.Sleep(10 * time.Second)
		if got := s.updates(); strings.Contains(got, "10.2.") || got != "" && !strings.HasPrefix(got, "10.1.0.1:1 a/child0") {
			t.Errorf("channel saw %s, want the first server's endpoints only", got)
		}
		secondCatalogue.Set(adstest.Cluster("c", "10.2.0.2:1"))
		time.Sleep(time.Minute)
		for line := range strings.Lines(s.updates()) {
			if strings.Contains(line, "10.1.") && strings.Contains(line, "10.2.") {
				t.Errorf("endpoints of both servers are mixed: %s", line)
			}
		}
		first.Set(adstest.EDS("d"), adstest.Cluster("d", "10.1.0.3:1"))
		s.start(server, first.Serve)
		time.Sleep(150 * time.Second)
		if got := s.updates(); !strings.HasSuffix(got, `10.1.0.1:1 a/child0, 10.1.0.3:1 d/child0 of ["a/child0","d/child0"]`) {
			t.Errorf("channel saw\n%s\nwant the first server's endpoints again", got)
		}
	})
}

// A channel that leaves idle mode while its server is down must use its last good clusters.
func TestClustersAfterIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestNetwork(t)
		s.start(server, adstest.NewCatalogue(adstest.Aggregate("shop", "a", "backup"), adstest.EDS("a"), adstest.Cluster("a", "10.1.0.1:1"), adstest.LogicalDNS("backup", "backup.example.com", 443)).Serve)
		b := s.builder()
		closeChannel := s.openChannel(b, "eds://"+server+"/shop?cds=true")
		s.expect(`10.1.0.1:1 a/child0, 10.9.0.1:443 backup of ["a/child0","backup"]`)
		closeChannel()
		s.stop(server)
		s.openChannel(b, "eds://"+server+"/shop?cds=true")
		time.Sleep(time.Minute)
		if got := s.updates(); !strings.HasSuffix(got, `10.1.0.1:1 a/child0, 10.9.0.1:443 backup of ["a/child0","backup"]`) {
			t.Errorf("channel saw\n%s\nwant the endpoints from before", got)
		}
	})
}

// While another channel keeps the stream to the server open, a channel that leaves idle mode must
// get its endpoints immediately, even if one of its clusters has no endpoints.
func TestClusterWithoutEndpointsDoesNotDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestNetwork(t)
		catalogue := adstest.NewCatalogue(
			adstest.Aggregate("shop", "near", "new"), adstest.EDS("near"), adstest.Cluster("near", "10.1.0.1:1"), adstest.EDS("new"),
			adstest.EDS("other"), adstest.Cluster("other", "10.2.0.1:1"),
		)
		s.start(server, catalogue.Serve)
		b := s.builder()
		s.openChannel(b, "eds://"+server+"/other?cds=true")
		for range 2 {
			closeChannel := s.openChannel(b, "eds://"+server+"/shop?cds=true")
			time.Sleep(time.Minute)
			s.updates()
			closeChannel()
			time.Sleep(30 * time.Minute)
		}
		start := time.Now()
		s.openChannel(b, "eds://"+server+"/shop?cds=true")
		if got := s.updates(); !strings.HasPrefix(got, "10.1.0.1:1 near/") || time.Since(start) > 0 {
			t.Errorf("the channel saw %q after %v, want the endpoint of near at once", got, time.Since(start))
		}
	})
}
