// Package topology translates the answers of sources to the updates that a resolver sends to a
// channel: endpoints with their paths and weights, and the configuration of the policy tree.
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
// The package has no goroutines, clocks or sockets. It does not register the policies that it
// names; the sources do.
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
	// Endpoints carry their paths (package hierarchy) and weights (grpc's
	// experimental/balancer/weight), in priority order.
	Endpoints []resolver.Endpoint
	// Why is the reason why no endpoint of the answer can take calls, or "" if an endpoint can.
	Why string

	priorities []priorityChild
	settings   Settings
	of, size   int  // number of endpoints before and after a subset was chosen, without reserves
	reserves   bool // whether some endpoints are also listed as reserves of a higher priority
}

// Size describes the number of endpoints and priorities for display.
//
//	20 of 5000 endpoints in 1 priority
func (t Tree) Size() string {
	endpoints := printable.Count(t.size, "endpoint", "endpoints")
	if t.IsPart() {
		endpoints = fmt.Sprintf("%d of %s", t.size, printable.Count(t.of, "endpoint", "endpoints"))
	}
	return endpoints + " in " + printable.Count(len(t.priorities), "priority", "priorities")
}

// IsPart reports whether the tree lacks some endpoints because the channel uses a subset.
func (t Tree) IsPart() bool { return t.size < t.of }

// Config returns the value of loadBalancingConfig in a service config. Equal trees return equal
// bytes. The result is not cached.
func (t Tree) Config() json.RawMessage { return encode(t.priorities, t.settings) }

// TreePriority is one priority of a tree.
type TreePriority struct {
	// Child is the name of the child of understudy_priority, and the first element of the paths of
	// its endpoints.
	Child string
	// Name is the display name: the localities, such as "us-east/a, us-east/b", or the name of the
	// target in a list of targets.
	Name string
	// Cluster is the name of the priority's cluster, or "" for plain endpoints.
	Cluster string
	// Why is the reason why no endpoint of the priority can take calls, or "" if an endpoint can.
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

// Reresolving returns a copy of the tree in which every priority passes requests for re-resolution
// on.
func (t Tree) Reresolving() Tree {
	t.priorities = slices.Clone(t.priorities)
	for i := range t.priorities {
		t.priorities[i].ignoreReresolution = false
	}
	return t
}

// WithOutlierDetection returns a copy of the tree. o is the outlier detection of the cluster that
// all of its priorities belong to, or nil if the cluster has none. Settings override it.
func (t Tree) WithOutlierDetection(o *OutlierDetection) Tree {
	t.priorities = slices.Clone(t.priorities)
	for i := range t.priorities {
		t.priorities[i].outlierDetection = o
	}
	return t
}

// Join returns a tree with the priorities of all trees, in order (gRFC A37). It applies the
// settings, and chooses the subset of endpoints that they configure. The names of children must
// differ between the trees: see Translator.Name and Target.Name.
func Join(settings Settings, trees ...Tree) Tree {
	var joined Tree
	if len(trees) == 1 {
		joined = trees[0] // most channels have one tree, which needs no copy
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

// count returns the number of endpoints, not counting reserves.
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
