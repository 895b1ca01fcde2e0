package eds

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

func withEndpoints(name string, kind clusterv3.Cluster_DiscoveryType, address string) *clusterv3.Cluster {
	return &clusterv3.Cluster{
		Name:                 name,
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: kind},
		LoadAssignment:       adstest.Cluster(name, address),
	}
}

func TestClusterChangesItsType(t *testing.T) {
	before, after := backend(t), backend(t)
	host, text, err := net.SplitHostPort(after)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	edsCluster := adstest.EDS("shop")
	edsCluster.EdsClusterConfig.ServiceName = "service"
	catalogue := adstest.NewCatalogue(edsCluster, adstest.Cluster("service", before), adstest.LogicalDNS("other", host, uint32(port)))
	c := newTraffic(t, "eds://"+serve(t, catalogue.Serve)+"/shop?cds=true")
	c.wantAllCallsTo(before, 10)
	stop := callContinuously(t, c.conn)
	for _, other := range []*clusterv3.Cluster{
		adstest.LogicalDNS("shop", host, uint32(port)),
		withEndpoints("shop", clusterv3.Cluster_STATIC, after),
		withEndpoints("shop", clusterv3.Cluster_STRICT_DNS, after),
		adstest.Aggregate("shop", "other"),
	} {
		catalogue.Set(other)
		c.awaitCallTo(after)
		c.wantAllCallsTo(after, 10)
		catalogue.Set(edsCluster)
		c.awaitCallTo(before)
		c.wantAllCallsTo(before, 10)
	}
	for _, invalid := range []*clusterv3.Cluster{withEndpoints("shop", clusterv3.Cluster_ORIGINAL_DST, after), adstest.Aggregate("shop", "shop")} {
		catalogue.Set(invalid)
		if invalid.GetClusterType() == nil {
			logged.Wait(t, testTimeout, "type ORIGINAL_DST is not supported")
		} else {
			logged.Wait(t, testTimeout, `cluster "shop" names itself: shop -> shop`)
		}
		c.wantAllCallsTo(before, 10)
	}
	if calls := stop(); calls == 0 {
		t.Error("made no calls meanwhile")
	}
}

// callContinuously makes calls until stop is called, and fails the test if a call fails. stop
// returns the number of calls.
func callContinuously(t *testing.T, conn *grpc.ClientConn) (stop func() int64) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var calls atomic.Int64
	var callers sync.WaitGroup
	for range 2 {
		callers.Go(func() {
			for tick := time.Tick(time.Millisecond); ctx.Err() == nil; <-tick {
				if _, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{}); err != nil {
					t.Errorf("a call failed: %v", err)
					return
				}
				calls.Add(1)
			}
		})
	}
	return func() int64 {
		cancel()
		callers.Wait()
		return calls.Load()
	}
}

// If one channel uses a cluster directly and another channel uses it through an aggregate, the
// channels must share one stream.
func TestClusterUsedDirectlyAndInAggregate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestNetwork(t)
		catalogue := adstest.NewCatalogue(adstest.Aggregate("shop", "near", "rest"), adstest.EDS("near"), adstest.Cluster("near", "10.1.0.1:1"), adstest.EDS("rest"), adstest.Cluster("rest", "10.1.0.2:1"))
		var mu sync.Mutex
		streams := 0
		s.start(server, func(stream *adstest.Stream) error {
			mu.Lock()
			streams++
			mu.Unlock()
			return catalogue.Serve(stream)
		})
		b := s.builder()
		s.openChannel(b, "eds://"+server+"/shop?cds=true")
		s.expect(`10.1.0.1:1 near/child0, 10.1.0.2:1 rest/child0 of ["near/child0","rest/child0"]`)
		s.openChannel(b, "eds://"+server+"/near?cds=true")
		s.expect(`10.1.0.1:1 near/child0 of ["near/child0"]`)
		catalogue.Set(adstest.Cluster("near", "10.1.0.9:1"))
		got := strings.Split(s.updates(), "\n")
		slices.Sort(got)
		want := []string{`10.1.0.9:1 near/child0 of ["near/child0"]`, `10.1.0.9:1 near/child0, 10.1.0.2:1 rest/child0 of ["near/child0","rest/child0"]`}
		if !slices.Equal(got, want) {
			t.Errorf("the channels saw %q, want %q", got, want)
		}
		if streams != 1 {
			t.Errorf("%d streams, want one", streams)
		}
	})
}

// In Envoy's protocol, a cluster that is missing from a response is deleted. This client must keep
// the cluster, as gRFC A53 allows.
func TestClusterMissingFromResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestNetwork(t)
		shop, near := adstest.Aggregate("shop", "near"), adstest.EDS("near")
		s.start(server, func(stream *adstest.Stream) error {
			version := 0
			send := func(list ...*clusterv3.Cluster) error {
				version++
				r := &discoveryv3.DiscoveryResponse{TypeUrl: adstest.ClustersURL, VersionInfo: fmt.Sprint(version), Nonce: fmt.Sprint(version)}
				for _, c := range list {
					r.Resources = append(r.Resources, adstest.Any(c))
				}
				time.Sleep(time.Second)
				return stream.Send(r)
			}
			err := errors.Join(send(shop), send(shop, near))
			time.Sleep(time.Second)
			err = errors.Join(err, stream.Respond("1", "e", adstest.Cluster("near", "10.1.0.1:1")), send(shop), send())
			return errors.Join(err, stream.Drain())
		})
		b := s.builder()
		s.openChannel(b, "eds://"+server+"/shop?cds=true")
		time.Sleep(10 * time.Second)
		s.expect(`10.1.0.1:1 near/child0 of ["near/child0"]`)
		time.Sleep(time.Hour)
		s.expect("")
		s.openChannel(b, "eds://"+server+"/shop?cds=true")
		s.expect(`10.1.0.1:1 near/child0 of ["near/child0"]`)
	})
}
