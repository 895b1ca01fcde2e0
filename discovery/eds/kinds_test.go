package eds

import (
	"context"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

// withEndpoints returns a cluster whose endpoints are in it.
func withEndpoints(name string, kind clusterv3.Cluster_DiscoveryType, address string) *clusterv3.Cluster {
	return &clusterv3.Cluster{
		Name:                 name,
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: kind},
		LoadAssignment:       adstest.Cluster(name, address),
	}
}

// A cluster becomes one of another type while it is in use, and back. No call fails, and all
// go where the new one says.
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
	byEDS := adstest.EDS("shop")
	byEDS.EdsClusterConfig.ServiceName = "service"
	catalogue := adstest.NewCatalogue(byEDS, adstest.Cluster("service", before), adstest.LogicalDNS("other", host, uint32(port)))
	c := newTraffic(t, "eds://"+serve(t, catalogue.Serve)+"/shop?cds=true")
	c.stays(before, 10)
	stop := callAllTheTime(t, c.conn)
	for _, other := range []*clusterv3.Cluster{
		adstest.LogicalDNS("shop", host, uint32(port)),
		withEndpoints("shop", clusterv3.Cluster_STATIC, after),
		withEndpoints("shop", clusterv3.Cluster_STRICT_DNS, after),
		adstest.Aggregate("shop", "other"),
	} {
		catalogue.Set(other)
		c.until(after)
		c.stays(after, 10)
		catalogue.Set(byEDS)
		c.until(before)
		c.stays(before, 10)
	}
	// What cannot be used leaves all as it is.
	for _, wrong := range []*clusterv3.Cluster{withEndpoints("shop", clusterv3.Cluster_ORIGINAL_DST, after), adstest.Aggregate("shop", "shop")} {
		catalogue.Set(wrong)
		if wrong.GetClusterType() == nil {
			logged.Wait(t, patience, "type ORIGINAL_DST is not supported")
		} else {
			logged.Wait(t, patience, `cluster "shop" names itself: shop -> shop`)
		}
		c.stays(before, 10)
	}
	if calls := stop(); calls < 100 {
		t.Errorf("%d calls meanwhile", calls)
	}
}

// callAllTheTime makes calls, none of which may fail, until it is told to stop. It returns
// how many there were.
func callAllTheTime(t *testing.T, conn *grpc.ClientConn) (stop func() int64) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var calls atomic.Int64
	var callers sync.WaitGroup
	for range 2 {
		callers.Go(func() {
			for ctx.Err() == nil {
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
