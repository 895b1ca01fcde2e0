package topology

import (
	"math"
	"slices"

	"google.golang.org/grpc/experimental/balancer/weight"

	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
)

const wholePriority = "all" // the only locality if a priority's endpoints are in one list

// inOneList merges the localities of each priority into one. An endpoint's new weight is its own
// times that of its locality (gRFC A42). If any product in a priority overflows 32 bits, we divide
// them all by the same number.
func (t Tree) inOneList() Tree {
	t.Endpoints, t.Priorities = slices.Clone(t.Endpoints), slices.Clone(t.Priorities)
	rest := t.Endpoints
	for i := range t.Priorities {
		p := &t.Priorities[i]
		var products []uint64
		largest := uint64(1)
		for _, l := range p.localities {
			for _, e := range rest[len(products):][:l.endpoints] {
				product := uint64(max(1, weight.FromEndpoint(e).Weight)) * uint64(l.weight)
				products, largest = append(products, product), max(largest, product)
			}
		}
		for k, product := range products {
			w := weight.EndpointInfo{Weight: uint32(max(1, product/((largest-1)/math.MaxUint32+1)))} //nolint:gosec // at most MaxUint32
			rest[k] = hierarchy.Set(weight.Set(rest[k], w), p.Child, wholePriority)
		}
		rest = rest[len(products):]
		if len(p.localities) > 0 {
			p.localities = []treeLocality{{wholePriority, 1, len(products)}}
		}
	}
	return t
}
