package eds

import (
	"runtime"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/grpc/resolver"
	"google.golang.org/protobuf/proto"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/adsclient"
	"github.com/understudy-lb/understudy/internal/awaiting"
	"github.com/understudy-lb/understudy/internal/testing/adstest"
	"github.com/understudy-lb/understudy/internal/testing/flat"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

type silent struct {
	*channel
	came chan int
}

func (c silent) UpdateState(s resolver.State) error {
	if awaiting.Is(s) { // there is no answer yet, so calls wait
		return nil
	}
	c.came <- len(s.Endpoints)
	return nil
}

func open(t *testing.T, text string, n int) silent {
	t.Helper()
	c := silent{newChannel(), make(chan int, 100)}
	r, err := given.Builder(Scheme).Build(target(t, text), c, resolver.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	for wait(t, "state", c.came) < n {
	}
	return c
}

// A channel that opens later must get the resources that the server has already sent for other
// channels.
func TestLaterChannelsShareWhatCame(t *testing.T) {
	const n, channels = 2000, 40
	for name, path := range map[string]string{"endpoints": "/c", "clusters": "/shop?cds=true"} {
		t.Run(name, func(t *testing.T) {
			catalogue := adstest.NewCatalogue(adstest.Aggregate("shop", "c"), adstest.EDS("c"), many(n))
			address := "eds://" + serve(t, catalogue.Serve) + path
			open(t, address, n)
			first, worked := settled(), allocated()
			for range channels {
				open(t, address, n)
			}
			each := (settled() - first) / channels >> 10
			t.Logf("a channel retains %d kB and allocates %d kB", each, (allocated()-worked)/channels>>10)
			if each > 1000 {
				t.Errorf("a later channel retains %d kB, want at most 1000", each)
			}
		})
	}
}

func settled() int64 {
	runtime.GC()
	runtime.GC()
	return int64(live())
}

// A server replaces a cluster. The memory of the old version must be freed.
func TestAnEditedClusterIsForgotten(t *testing.T) {
	const edits = 30
	static := func(n int) *clusterv3.Cluster {
		return &clusterv3.Cluster{
			Name:                 "c",
			ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC},
			LoadAssignment:       &endpointv3.ClusterLoadAssignment{ClusterName: "c", Endpoints: many(n).GetEndpoints()},
		}
	}
	catalogue := adstest.NewCatalogue(static(2000))
	c := open(t, "eds://"+serve(t, catalogue.Serve)+"/c?cds=true", 2000)
	first := settled()
	for i := range edits {
		catalogue.Set(static(2001 + i))
		for wait(t, "state", c.came) < 2001+i {
		}
	}
	if grown := settled() - first; grown > 12<<20 {
		t.Errorf("heap grew by %[2]d kB in %[1]d edits, want at most one cluster's size", edits, grown>>10)
	}
}

type taking struct {
	discovery.Receiver
	answer discovery.Answer
}

func (r *taking) Update(a discovery.Answer) error {
	r.answer = a
	return nil
}

func stateOf(t *testing.T, m proto.Message) adsclient.State {
	t.Helper()
	r, err := read(m)
	if err != nil {
		t.Fatal(err)
	}
	return adsclient.State{Good: &adsclient.Resource{Read: r}, Version: "7"}
}

func TestWhatComesIsReadOnce(t *testing.T) {
	var one, other taking
	state := stateOf(t, many(1))
	passOn(flat.Receiver(&one), state)
	passOn(flat.Receiver(&other), state)
	first := func(r taking) *discovery.Endpoint { return &r.answer.Priorities[0].Localities[0].Endpoints[0] }
	if one.answer.Identity == "" || first(one) != first(other) {
		t.Errorf("the resource was parsed twice, or has no identity: %+v", one.answer)
	}
}
