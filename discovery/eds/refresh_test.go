package eds

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/discovery/failover"
	"github.com/understudy-lb/understudy/internal/envoy/adsclient"
	"github.com/understudy-lb/understudy/internal/testing/adstest"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

type rotatingDNS struct {
	mu      sync.Mutex
	answers map[string][]string
	lookups map[string]int
}

func (*rotatingDNS) Scheme() string { return "dns" }

func (d *rotatingDNS) Build(target resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) (resolver.Resolver, error) {
	w := &rotatingName{d, target.Endpoint(), cc}
	w.ResolveNow(resolver.ResolveNowOptions{})
	return w, nil
}

type rotatingName struct {
	dns  *rotatingDNS
	name string
	cc   resolver.ClientConn
}

func (w *rotatingName) ResolveNow(resolver.ResolveNowOptions) {
	d := w.dns
	d.mu.Lock()
	answers := d.answers[w.name]
	answer := answers[d.lookups[w.name]%len(answers)]
	d.lookups[w.name]++
	d.mu.Unlock()
	var state resolver.State
	for a := range strings.FieldsSeq(answer) {
		state.Endpoints = append(state.Endpoints, resolver.Endpoint{Addresses: []resolver.Address{{Addr: a}}})
	}
	_ = w.cc.UpdateState(state)
}

func (*rotatingName) Close() {}

// DNS names in clusters must be looked up at the refresh interval of the target. An address must be
// removed after removeAfter consecutive answers without it. Each answer contains one of three
// addresses in turn, so no address may be removed with removeAfter=3.
func TestDNSClustersAreRefreshed(t *testing.T) {
	for parameters, isStable := range map[string]bool{"&refresh=30s&removeAfter=3": true, "&refresh=30s": false} {
		synctest.Test(t, func(t *testing.T) {
			s := newTestNetwork(t)
			dns := &rotatingDNS{
				answers: map[string][]string{"logical.test:1": {"10.1.0.1:1", "10.1.0.2:1", "10.1.0.3:1"}, "strict.test:1": {"10.2.0.1:1", "10.2.0.2:1", "10.2.0.3:1"}},
				lookups: make(map[string]int),
			}
			strict := adstest.LogicalDNS("strict", "strict.test", 1)
			strict.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STRICT_DNS}
			s.start(server, adstest.NewCatalogue(adstest.Aggregate("shop", "logical", "strict"), adstest.LogicalDNS("logical", "logical.test", 1), strict).Serve)
			network := &adsclient.Network{Dial: s.dial}
			b := given.Builder(Scheme, given.Sources(WithInsecure()), given.Sources(failover.WithResolvers(dns)), given.Sources(discovery.OwnOption(func(o *adsclient.Options) { o.Network = network })))
			s.openChannel(b, "eds://"+server+"/shop?cds=true"+parameters)
			time.Sleep(3 * 34 * time.Second)
			const allAddresses = `10.1.0.1:1 logical, 10.1.0.2:1 logical, 10.1.0.3:1 logical, 10.2.0.1:1 strict/child0, 10.2.0.2:1 strict/child0, 10.2.0.3:1 strict/child0 of ["logical","strict/child0"]`
			if got := s.updates(); strings.HasSuffix(got, allAddresses) != isStable {
				t.Errorf("%s: channel saw\n%s", parameters, got)
			}
			time.Sleep(time.Hour)
			if got := s.updates(); (got == "") != isStable {
				t.Errorf("%s: in an hour the channel saw\n%s", parameters, got)
			}
			for name, n := range dns.lookups {
				if n < 100 || n > 150 {
					t.Errorf("%s: %s was looked up %d times in an hour", parameters, name, n)
				}
			}
		})
	}
}

type pendingDNS struct {
	mu    sync.Mutex
	conns []resolver.ClientConn
}

func (*pendingDNS) Scheme() string { return "dns" }

func (d *pendingDNS) Build(_ resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) (resolver.Resolver, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.conns = append(d.conns, cc)
	return d, nil
}

func (*pendingDNS) ResolveNow(resolver.ResolveNowOptions) {}
func (*pendingDNS) Close()                                {}

// The first server is down, and a DNS name in a cluster of the second server is still being looked
// up. Until the lookup ends, the clusters and endpoints of the first server must stay in use.
func TestServersAreNotMixedDuringLookup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestNetwork(t)
		dns := &pendingDNS{}
		first := adstest.NewCatalogue(adstest.Aggregate("shop", "a", "b"), adstest.EDS("a"), adstest.Cluster("a", "10.1.0.1:1"), adstest.EDS("b"), adstest.Cluster("b", "10.1.0.2:1"))
		other := adstest.NewCatalogue(adstest.Aggregate("shop", "a", "name"), adstest.EDS("a"), adstest.Cluster("a", "10.2.0.1:1"), adstest.LogicalDNS("name", "name.test", 1))
		s.start(server, first.Serve)
		s.start(second, other.Serve)
		network := &adsclient.Network{Dial: s.dial}
		b := given.Builder(Scheme, given.Sources(WithInsecure()), given.Sources(failover.WithResolvers(dns)), given.Sources(discovery.OwnOption(func(o *adsclient.Options) { o.Network = network })))
		s.openChannel(b, "eds://"+server+","+second+"/shop?cds=true&fallbackOnReachabilityOnly=true")
		s.expect(`10.1.0.1:1 a/child0, 10.1.0.2:1 b/child0 of ["a/child0","b/child0"]`)
		s.stop(server)
		time.Sleep(9 * time.Second)
		s.expect("")
		for _, cc := range dns.conns {
			_ = cc.UpdateState(resolver.State{Endpoints: []resolver.Endpoint{{Addresses: []resolver.Address{{Addr: "10.9.0.1:1"}}}}})
		}
		s.expect(`10.2.0.1:1 a/child0, 10.9.0.1:1 name of ["a/child0","name"]`)
	})
}

// After a channel was idle, its server still sends the endpoints but no longer the clusters. The
// last good clusters must stay in use, and changes of their endpoints must reach the channel.
func TestEndpointUpdatesWithoutClusters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestNetwork(t)
		s.start(server, adstest.NewCatalogue(adstest.Aggregate("shop", "a"), adstest.EDS("a"), adstest.Cluster("a", "10.1.0.1:1")).Serve)
		b := s.builder()
		closeChannel := s.openChannel(b, "eds://"+server+"/shop?cds=true")
		s.expect(`10.1.0.1:1 a/child0 of ["a/child0"]`)
		closeChannel()
		s.stop(server)
		endpointsOnly := adstest.NewCatalogue(adstest.Cluster("a", "10.1.0.2:1"))
		s.start(server, endpointsOnly.Serve)
		time.Sleep(time.Minute)
		s.openChannel(b, "eds://"+server+"/shop?cds=true")
		time.Sleep(time.Minute)
		s.expect(`10.1.0.2:1 a/child0 of ["a/child0"]`)
		endpointsOnly.Set(adstest.Cluster("a", "10.1.0.3:1"))
		s.expect(`10.1.0.3:1 a/child0 of ["a/child0"]`)
	})
}
