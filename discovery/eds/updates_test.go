package eds

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
	"github.com/understudy-lb/understudy/policy/priority"
)

func manyLocalities() *endpointv3.ClusterLoadAssignment {
	cluster := &endpointv3.ClusterLoadAssignment{ClusterName: "c"}
	for l := range 10 {
		addresses := make([]string, 1000)
		for i := range addresses {
			addresses[i] = fmt.Sprintf("10.%d.%d.%d:443", l, i>>8, i&255)
		}
		locality := adstest.Cluster("", addresses...).GetEndpoints()[0]
		locality.Locality = &corev3.Locality{Zone: strconv.Itoa(l)}
		cluster.Endpoints = append(cluster.Endpoints, locality)
	}
	return cluster
}

// An update that changes the weight of one endpoint among 10,000 must not open a connection.
func TestWeightChangeAmongTenThousandEndpoints(t *testing.T) {
	before := manyLocalities()
	after := proto.CloneOf(before)
	after.Endpoints[3].LbEndpoints[7].LoadBalancingWeight = wrapperspb.UInt32(999)
	const changedAddress = "10.3.0.7:443" // gets half of its locality's calls after the update
	sendUpdate := make(chan struct{})
	c := build(t, "eds://"+serve(t, func(s *adstest.Stream) error {
		if err := s.Respond("1", "n1", before); err != nil {
			return err
		}
		<-sendUpdate
		return errors.Join(s.Respond("2", "n2", after), s.Drain())
	})+"/c")
	first := wait(t, "state", c.states)
	close(sendUpdate)
	second := wait(t, "state", c.states)

	synctest.Test(t, func(t *testing.T) {
		cc := new(lbtest.ClientConn)
		b := balancer.Get(priority.Name)
		p := b.Build(cc, balancer.BuildOptions{})
		defer p.Close()
		apply(t, b, p, first)
		for _, sc := range cc.SubConns() {
			sc.Report(connectivity.Connecting, nil)
			sc.Report(connectivity.Ready, nil)
		}
		synctest.Wait()
		for _, sc := range cc.SubConns() {
			sc.ReportHealth(connectivity.Ready, nil)
		}
		<-time.After(time.Second) // with many endpoints, the new picker is delayed
		synctest.Wait()
		if got := countPicks(cc, changedAddress); got != 1 {
			t.Errorf("%d of 10,000 picks before the update, want 1", got)
		}
		apply(t, b, p, second)
		synctest.Wait()
		// The endpoint should get half of a tenth of the picks, which is 500 with a standard
		// deviation of 8. The limits are 5 standard deviations away.
		if got := countPicks(cc, changedAddress); got < 460 || got > 540 {
			t.Errorf("%d of 10,000 picks after the update, want about 500", got)
		}
		if all, live := len(cc.SubConns()), len(cc.LiveSubConns()); all != 10_000 || live != 10_000 {
			t.Errorf("%d connections were made and %d remain, want the first 10,000", all, live)
		}
	})
}

func apply(t *testing.T, b balancer.Builder, p balancer.Balancer, state resolver.State) {
	t.Helper()
	config, err := b.(balancer.ConfigParser).ParseConfig(json.RawMessage("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.UpdateClientConnState(balancer.ClientConnState{ResolverState: state, BalancerConfig: config}); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

func countPicks(cc *lbtest.ClientConn, address string) int {
	n := 0
	for range 10_000 {
		if lbtest.Pick(cc.State()) == address {
			n++
		}
	}
	return n
}
