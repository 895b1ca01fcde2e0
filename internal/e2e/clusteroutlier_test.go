package e2e

import (
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

func outlierDetection() *clusterv3.OutlierDetection {
	return &clusterv3.OutlierDetection{
		Interval:                       durationpb.New(time.Second),
		MaxEjectionPercent:             wrapperspb.UInt32(100),
		EnforcingSuccessRate:           wrapperspb.UInt32(0),
		EnforcingFailurePercentage:     wrapperspb.UInt32(100),
		FailurePercentageMinimumHosts:  wrapperspb.UInt32(1),
		FailurePercentageRequestVolume: wrapperspb.UInt32(5),
	}
}

// A cluster has outlier detection. First one of its endpoints is ejected, and then all of them.
// When the cluster no longer has outlier detection, its priority is used again.
func TestOutlierDetectionOfCDSCluster(t *testing.T) {
	t.Parallel()
	good, bad, far := startServer(t, "good", nil), startServer(t, "bad", nil), startServer(t, "far", nil)
	near := adstest.EDS("near")
	near.OutlierDetection = outlierDetection()
	catalogue := adstest.NewCatalogue(
		adstest.Aggregate("shop", "near", "far"), near, adstest.Cluster("near", good.address, bad.address),
		adstest.EDS("far"), adstest.Cluster("far", far.address),
	)
	cc := newClient(t, "eds://"+startManager(t, catalogue.Serve)+"/shop?cds=true")
	f := startFlow(t, cc, callTimeout)
	f.await(t, 0, "was answered by the first endpoint", answeredBy("good"))
	f.await(t, 0, "was answered by the second endpoint", answeredBy("bad"))
	broken := status.Error(codes.Internal, "broken")
	bad.err = broken
	bad.failures.Store(1 << 40)
	t.Logf("one endpoint was ejected after %v", f.awaitConsecutive(t, "were answered by the other endpoint", answeredBy("good")))
	good.err = broken
	good.failures.Store(1 << 40)
	f.await(t, f.count(), "was answered by the next priority", answeredBy("far"))
	calls, _ := f.since(0)
	wantOnlyCodes(t, calls, codes.Internal)
	// Without outlier detection, a connected priority is used even if all its calls fail.
	catalogue.Set(adstest.EDS("near"))
	f.awaitConsecutive(t, "failed in the first priority", func(c call) bool { return status.Code(c.err) == codes.Internal })
}
