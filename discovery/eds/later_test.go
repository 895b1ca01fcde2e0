package eds

import (
	"runtime"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/grpc/resolver"
	"google.golang.org/protobuf/proto"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/channel/join"
	"github.com/understudy-lb/understudy/internal/envoy/adsclient"
	"github.com/understudy-lb/understudy/internal/testing/adstest"
	"github.com/understudy-lb/understudy/internal/testing/flat"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

type countingChannel struct {
	*channel
	counts chan int
}

func (c countingChannel) UpdateState(s resolver.State) error {
	if join.IsAwaiting(s) { // the source has not answered yet
		return nil
	}
	c.counts <- len(s.Endpoints)
	return nil
}

func open(t *testing.T, text string, n int) countingChannel {
	t.Helper()
	c := countingChannel{newChannel(), make(chan int, 100)}
	r, err := given.Builder(Scheme).Build(target(t, text), c, resolver.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	for wait(t, "state", c.counts) < n {
	}
	return c
}

func heapAfterGC() int64 {
	runtime.GC()
	runtime.GC()
	return int64(heapInUse())
}

// If a server replaces a cluster, the memory of the old version must be freed.
func TestReplacedClusterIsCollected(t *testing.T) {
	const edits = 30
	static := func(n int) *clusterv3.Cluster {
		return &clusterv3.Cluster{
			Name:                 "c",
			ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC},
			LoadAssignment:       &endpointv3.ClusterLoadAssignment{ClusterName: "c", Endpoints: manyEndpoints(n).GetEndpoints()},
		}
	}
	catalogue := adstest.NewCatalogue(static(2000))
	c := open(t, "eds://"+serve(t, catalogue.Serve)+"/c?cds=true", 2000)
	first := heapAfterGC()
	for i := range edits {
		catalogue.Set(static(2001 + i))
		for wait(t, "state", c.counts) < 2001+i {
		}
	}
	if growth := heapAfterGC() - first; growth > 12<<20 {
		t.Errorf("heap grew by %[2]d kB in %[1]d edits, want at most one cluster's size", edits, growth>>10)
	}
}

type answerReceiver struct {
	discovery.Receiver
	answer discovery.Answer
}

func (r *answerReceiver) Update(a discovery.Answer) error {
	r.answer = a
	return nil
}

func stateOf(t *testing.T, m proto.Message) adsclient.State {
	t.Helper()
	r, err := readResource(m)
	if err != nil {
		t.Fatal(err)
	}
	return adsclient.State{Good: &adsclient.Resource{Read: r}, Version: "7"}
}

// Channels share what was read, and the answers have the version of the response.
func TestResourceIsReadOnce(t *testing.T) {
	var one, other answerReceiver
	state := stateOf(t, manyEndpoints(1))
	sendState(flat.Receiver(&one), state)
	sendState(flat.Receiver(&other), state)
	first := func(r answerReceiver) *discovery.Endpoint { return &r.answer.Priorities[0].Localities[0].Endpoints[0] }
	if one.answer.Identity == "" || one.answer.Version != "7" || first(one) != first(other) {
		t.Errorf("the resource was parsed twice, or has no identity or version: %+v", one.answer)
	}
}
