// Package topology turns what sources of endpoints answer into what a resolver sends to
// a channel: endpoints with their paths and weights, and the configuration of the
// tree of policies that they are for.
//
// The tree has one shape, whatever the answer:
//
//	understudy_priority
//	  understudy_outlier_detection           one for each priority
//	    understudy_drop
//	      understudy_weighted_target         one child for each locality
//	        understudy_weighted_round_robin  one endpoint for each leaf
//
// so that an update never changes the type of a policy, which would cost all the
// connections below it. A path has two elements: the child of understudy_priority,
// and the locality.
//
// The names of children are kept from update to update (gRFC A56, "LB Policy
// Configuration"): the connections to an endpoint outlive changes of weights, of
// its neighbours, and of its priority.
//
// Everything here is a function of its input: no goroutines, clocks or sockets. The
// package does not register the policies that it names; sources of endpoints do.
package topology

import (
	"encoding/json"
	"fmt"
	"slices"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/printable"
	"github.com/understudy-lb/understudy/internal/stateattr"
)

// Tree is what a resolver sends to a channel.
type Tree struct {
	// Endpoints carry their paths (package hierarchy) and weights (grpc's
	// experimental/balancer/weight), in priority order.
	Endpoints []resolver.Endpoint
	// Why says why no endpoint of the answer can take calls, "" where one can.
	Why string

	priorities []priorityChild
	settings   Settings
	of, size   int  // how many endpoints it has, without a subset and with it; reserves do not count
	reserves   bool // some endpoints have another place in the tree, with this one as a reserve
}

// Size says how many endpoints and priorities the tree has, for people.
//
//	20 of 5000 endpoints in 1 priority
func (t Tree) Size() string {
	endpoints := printable.Count(t.size, "endpoint", "endpoints")
	if t.IsPart() {
		endpoints = fmt.Sprintf("%d of %s", t.size, printable.Count(t.of, "endpoint", "endpoints"))
	}
	return endpoints + " in " + printable.Count(len(t.priorities), "priority", "priorities")
}

// IsPart reports whether the tree leaves out endpoints, for the channel is to connect a subset.
func (t Tree) IsPart() bool { return t.size < t.of }

// Config returns the value of loadBalancingConfig in a service config. Equal trees have equal
// bytes. Each call makes it.
func (t Tree) Config() json.RawMessage { return encode(t.priorities, t.settings) }

// TreePriority is one priority of a tree.
type TreePriority struct {
	// Child is the name of its child of understudy_priority, and the first element of
	// its endpoints' paths.
	Child string
	// Name is what people call it: its localities, such as "us-east/a, us-east/b", or
	// its part of a list of targets.
	Name string
	// Cluster is the name of the cluster that it is of, "" for plain endpoints.
	Cluster string
	// Why says why none of its endpoints can take calls, "" where one can.
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

// Reresolving returns the tree with requests for re-resolution passed on in all
// priorities.
func (t Tree) Reresolving() Tree {
	t.priorities = slices.Clone(t.priorities)
	for i := range t.priorities {
		t.priorities[i].ignoreReresolution = false
	}
	return t
}

// WithOutlierDetection returns the tree with what the cluster of all its priorities says
// of outlier detection, nil for nothing. Settings go before it.
func (t Tree) WithOutlierDetection(o *OutlierDetection) Tree {
	t.priorities = slices.Clone(t.priorities)
	for i := range t.priorities {
		t.priorities[i].outlierDetection = o
	}
	return t
}

// Join returns one tree over the priorities of all trees, in order (gRFC A37). Its
// policies have the given settings, and its endpoints are the subset that these say. The names of
// children must differ between trees: see Translator.Name and Part.Name.
func Join(settings Settings, trees ...Tree) Tree {
	var joined Tree
	if len(trees) == 1 {
		joined = trees[0] // most channels have one, which is not copied
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

// count returns how many endpoints the tree has, each in one place.
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
