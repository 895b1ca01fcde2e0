package topology

import (
	"encoding/json"
	"testing"

	"google.golang.org/grpc/experimental/balancer/weight"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

func endpointAt(address string) resolver.Endpoint {
	return resolver.Endpoint{Addresses: []resolver.Address{{Addr: address}}}
}

func paths(endpoints []resolver.Endpoint) string {
	s := ""
	for _, e := range endpoints {
		p, _ := json.Marshal(hierarchy.Path(e))
		w, _ := json.Marshal(weight.FromEndpoint(e).Weight)
		s += e.Addresses[0].Addr + " " + string(p) + " " + string(w) + "\n"
	}
	return s
}

const durations = `"failoverTimeout":"10s","childRetention":"900s","removedChildRetention":"0s"`

func TestPlainTreesBecomePriorities(t *testing.T) {
	heavy := weight.Set(endpointAt("192.0.2.2:1"), weight.EndpointInfo{Weight: 7})
	given := []resolver.Endpoint{endpointAt("192.0.2.1:1"), heavy}
	policies, err := NewPolicies(Settings{})
	if err != nil {
		t.Fatal(err)
	}
	tree := policies.Combine(Plain("east", "", given), Plain("west", "", given[:1]), Plain("none", "", nil))

	want := "192.0.2.1:1 [\"east\",\"/\"] 0\n192.0.2.2:1 [\"east\",\"/\"] 7\n192.0.2.1:1 [\"west\",\"/\"] 0\n"
	if got := paths(tree.Endpoints); got != want {
		t.Errorf("endpoints:\n%swant:\n%s", got, want)
	}
	if hierarchy.Path(given[0]) != nil {
		t.Error("the given endpoints were modified")
	}
	child := `{"config":[{"understudy_outlier_detection":{"interval":"10s","baseEjectionTime":"30s","maxEjectionTime":"300s",` +
		`"maxEjectionPercent":10,"childPolicy":[{"understudy_drop":{"childPolicy":[{"understudy_weighted_target":` +
		`{"targets":{"/":{"weight":1,"childPolicy":[{"understudy_weighted_round_robin":{"startPoint":"random"}}]}},` +
		`"removedChildRetention":"0s","startPoint":"random"}}]}}]}}],"ignoreReresolutionRequests":false}`
	want = `[{"understudy_priority":{"children":{"east":` + child + `,"none":` + child + `,"west":` + child +
		`},"priorities":["east","west","none"],"sourcePriorities":[0,1,2],` + durations + `}}]`
	if got := lbtest.JSON(tree.Config()); got != want {
		t.Errorf("config = %s\nwant     %s", got, want)
	}
}
