package priority

import (
	"testing"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
)

func TestConnectionsOfChild(t *testing.T) {
	endpoint := func(locality string, addresses ...string) resolver.Endpoint {
		var e resolver.Endpoint
		for _, a := range addresses {
			e.Addresses = append(e.Addresses, resolver.Address{Addr: a})
		}
		return hierarchy.Set(e, locality)
	}
	tree := func(leaf string) lbconfig.Policy {
		localities := &lbconfig.WeightedTarget{Targets: map[string]lbconfig.Target{
			"x": {Weight: 1, ChildPolicy: lbconfig.Named(leaf, nil)},
			"y": {Weight: 1, ChildPolicy: lbconfig.Named(leaf, nil)},
		}}
		drop := &lbconfig.Drop{ChildPolicy: lbconfig.Named("understudy_weighted_target", localities)}
		return lbconfig.Named("outlier", &lbconfig.OutlierDetection{ChildPolicy: lbconfig.Named("drop", drop)})
	}
	all, first := tree("understudy_weighted_round_robin"), tree("understudy_pick_first")
	nested := lbconfig.Named("understudy_priority", &lbconfig.Priority{
		Children:   map[string]lbconfig.PriorityChild{"x": {Config: lbconfig.Named("round_robin", nil)}, "y": {Config: lbconfig.Named("pick_first", nil)}},
		Priorities: []string{"x", "y"},
	})
	for _, test := range []struct {
		name      string
		policy    lbconfig.Policy
		endpoints []resolver.Endpoint
		want      int
	}{
		{"no endpoint", all, nil, 0},
		{"one of several addresses", all, []resolver.Endpoint{endpoint("x", "1", "2")}, 1},
		{"one given twice", all, []resolver.Endpoint{endpoint("x", "1", "2"), endpoint("x", "2", "1")}, 1},
		{"two", all, []resolver.Endpoint{endpoint("x", "1"), endpoint("x", "2")}, 2},
		{"one in each of two localities", all, []resolver.Endpoint{endpoint("x", "1"), endpoint("y", "2")}, 2},
		{"none that has a locality", all, []resolver.Endpoint{endpoint("z", "1"), endpoint("z", "2")}, 0},
		{"pick_first over two", first, []resolver.Endpoint{endpoint("x", "1"), endpoint("x", "2")}, 1},
		{"pick_first in each of two localities", first, []resolver.Endpoint{endpoint("x", "1"), endpoint("y", "2")}, 2},
		{"priorities of one each", nested, []resolver.Endpoint{endpoint("x", "1"), endpoint("y", "2")}, 1},
		{"priorities without endpoints", nested, nil, 0},
		{"priorities of which one has two", nested, []resolver.Endpoint{endpoint("x", "1"), endpoint("x", "2"), endpoint("y", "3")}, 2},
	} {
		if got := connections(test.policy, test.endpoints, 2); got != test.want {
			t.Errorf("%s: %d connections, want %d", test.name, got, test.want)
		}
	}
}
