package topology

import (
	"math"

	"google.golang.org/grpc/experimental/balancer/weight"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
)

// wholePriority is the name of the only locality of a priority whose endpoints are in one list.
const wholePriority = "all"

// inOneList returns the tree with one locality for each priority. An endpoint's weight is the
// product of its own and that of its locality (gRFC A42).
func (t Tree) inOneList() Tree {
	localities := make(map[string]map[string]uint32)
	priorities := make([]priorityChild, len(t.priorities))
	var largest uint64 = 1
	for i, p := range t.priorities {
		localities[p.name] = p.localities
		priorities[i] = p
		if len(p.localities) > 0 {
			priorities[i].localities = map[string]uint32{wholePriority: 1}
		}
	}
	product := func(e resolver.Endpoint) uint64 {
		path := hierarchy.Path(e)
		if len(path) != 2 {
			return 1
		}
		return uint64(max(1, weight.FromEndpoint(e).Weight)) * uint64(max(1, localities[path[0]][path[1]]))
	}
	for _, e := range t.Endpoints {
		largest = max(largest, product(e))
	}
	divisor := (largest-1)/math.MaxUint32 + 1
	endpoints := make([]resolver.Endpoint, len(t.Endpoints))
	for i, e := range t.Endpoints {
		endpoints[i] = e
		if path := hierarchy.Path(e); len(path) == 2 {
			w := weight.EndpointInfo{Weight: uint32(max(1, product(e)/divisor))} //nolint:gosec // at most MaxUint32
			endpoints[i] = hierarchy.Set(weight.Set(e, w), path[0], wholePriority)
		}
	}
	t.Endpoints, t.priorities = endpoints, priorities
	return t
}
