// Package topology translates the answers of sources to the updates of a channel. An update
// consists of endpoints, with their paths and weights, and the configuration of the policy tree.
//
// The tree always has the same shape:
//
//	understudy_priority
//	  understudy_outlier_detection           one for each priority
//	    understudy_drop
//	      understudy_weighted_target         one child for each locality
//	        understudy_weighted_round_robin  one endpoint for each leaf
//
// An update therefore never changes the type of a policy, which would close all connections below
// it. A path has two elements: the child of understudy_priority and the locality.
//
// The names of children are stable across updates (gRFC A56, "LB Policy Configuration"), so an
// endpoint keeps its connections when weights, other endpoints or its priority change.
//
// The package has no goroutines, clocks or sockets. It does not register the policies in the tree;
// the sources do.
package topology

import (
	"encoding/json"
	"fmt"
	"slices"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/printable"
	"github.com/understudy-lb/understudy/internal/stateattr"
)

// Tree is what a resolver sends to a channel in an update.
type Tree struct {
	// Endpoints are in priority order. They carry their paths (package hierarchy) and their weights
	// (grpc's experimental/balancer/weight).
	Endpoints []resolver.Endpoint
	// Why says why no endpoint of the answer can receive calls. It is "" if one can.
	Why string

	priorities []priorityChild
	settings   Settings
	of, size   int  // endpoints before and after the choice of a subset, without reserves
	reserves   bool // some endpoints are also listed as reserves of a higher priority
}

// Size describes for users how large the tree is, as in "20 of 5000 endpoints in 1 priority".
func (t Tree) Size() string {
	endpoints := printable.Count(t.size, "endpoint", "endpoints")
	if t.IsPart() {
		endpoints = fmt.Sprintf("%d of %s", t.size, printable.Count(t.of, "endpoint", "endpoints"))
	}
	return endpoints + " in " + printable.Count(len(t.priorities), "priority", "priorities")
}

// IsPart reports whether endpoints are missing from the tree because the channel uses a subset.
func (t Tree) IsPart() bool { return t.size < t.of }

// Config returns the value of loadBalancingConfig for a service config. Equal trees return equal
// bytes. Each call encodes the tree again.
func (t Tree) Config() json.RawMessage { return encode(t.priorities, t.settings) }

// TreePriority is one priority of a tree.
type TreePriority struct {
	// Child is the name of the child of understudy_priority, which is the first element of the
	// paths of its endpoints.
	Child string
	// Name is shown to users: the localities, such as "us-east/a, us-east/b", or the name of a
	// target in a list.
	Name string
	// Cluster is the name of the priority's cluster, or "" if the endpoints belong to none.
	Cluster string
	// Why says why no endpoint of the priority can receive calls. It is "" if one can.
	Why string
}

// Priorities returns the priorities of the tree in order.
func (t Tree) Priorities() []TreePriority {
	var priorities []TreePriority
	for _, p := range t.priorities {
		priorities = append(priorities, TreePriority{p.name, p.title, p.cluster, p.why})
	}
	return priorities
}

// Reresolving returns a copy of the tree in which all priorities pass on requests for a
// re-resolution.
func (t Tree) Reresolving() Tree {
	t.priorities = slices.Clone(t.priorities)
	for i := range t.priorities {
		t.priorities[i].ignoreReresolution = false
	}
	return t
}

// WithOutlierDetection returns a copy of the tree in which all priorities use the outlier detection
// o of their cluster. o is nil if the cluster has none. The channel's settings override it.
func (t Tree) WithOutlierDetection(o *OutlierDetection) Tree {
	t.priorities = slices.Clone(t.priorities)
	for i := range t.priorities {
		t.priorities[i].outlierDetection = o
	}
	return t
}

// Join returns a tree with the priorities of all trees, in order (gRFC A37). It applies the
// settings, and chooses the subset of endpoints if they ask for one. The names of children must
// differ between the trees: see Translator.Name and Target.Name.
func Join(settings Settings, trees ...Tree) Tree {
	var joined Tree
	if len(trees) == 1 {
		joined = trees[0] // most channels have one tree, which is not copied
		trees = nil
	}
	for _, tree := range trees {
		joined.Endpoints = append(joined.Endpoints, tree.Endpoints...)
		joined.priorities = append(joined.priorities, tree.priorities...)
		joined.reserves = joined.reserves || tree.reserves
	}
	joined.settings = settings
	joined.of = joined.count()
	joined.Endpoints = settings.subset(joined.Endpoints)
	joined.size = joined.count()
	return joined
}

func (t *Tree) count() int {
	n := len(t.Endpoints)
	if t.reserves {
		for _, e := range t.Endpoints {
			if stateattr.IsReserve(e) {
				n--
			}
		}
	}
	return n
}
