// Package topology translates the answers of sources to updates of a channel. An update consists of
// endpoints, with their paths and weights, and of the configuration of the policy tree.
//
// The tree always has the same shape:
//
//	understudy_priority
//	  understudy_outlier_detection           one for each priority
//	    understudy_drop
//	      understudy_weighted_target         one child for each locality
//	        understudy_weighted_round_robin  one child for each endpoint; or understudy_endpoint_policy
//
// An update therefore never changes the type of a policy. Such a change would close all connections
// below the policy. A path has two elements: the child of understudy_priority and the locality.
//
// The names of children are stable across updates (gRFC A56, "LB Policy Configuration"). An
// endpoint therefore keeps its connections when weights, other endpoints or its priority change.
//
// The package has no goroutines, clocks or sockets. It does not register the policies in the tree.
package topology

import (
	"fmt"
	"slices"

	"google.golang.org/grpc/experimental/balancer/weight"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	"github.com/understudy-lb/understudy/internal/config/options"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

// Tree is what a resolver sends to a channel in an update.
type Tree struct {
	// Endpoints are in priority order. Their attributes are the paths (package hierarchy) and the
	// weights (grpc's experimental/balancer/weight).
	Endpoints []resolver.Endpoint
	// Why says why no endpoint of the answer can receive calls. It is "" if an endpoint can.
	Why        string
	Priorities []TreePriority

	policies *Policies // nil before Join
	total    int       // number of endpoints before the choice of a subset
}

// TreePriority is one priority of a tree.
type TreePriority struct {
	// Child is the name of the child of understudy_priority. It is the first element of the paths
	// of its endpoints.
	Child string
	// Name is the name for users: the localities, as in "us-east/a, us-east/b", or the name of a
	// target.
	Name    string
	Cluster string
	// Why says why no endpoint of the priority can receive calls. It is "" if an endpoint can.
	Why string

	continuesPriority  bool // it belongs to the same priority of the source as the previous one
	ignoreReresolution bool
	drops              []lbconfig.DropCategory
	localities         []treeLocality // in the order of Tree.Endpoints
	outlierDetection   *lbconfig.OutlierDetection
}

type treeLocality struct {
	name      string
	weight    uint32
	endpoints int // the number of its endpoints
}

// Size describes the size of the tree, as in "20 of 5000 endpoints in 1 priority".
func (t Tree) Size() string {
	endpoints := printable.Count(len(t.Endpoints), "endpoint", "endpoints")
	if t.IsSubset() {
		endpoints = fmt.Sprintf("%d of %s", len(t.Endpoints), printable.Count(t.total, "endpoint", "endpoints"))
	}
	return endpoints + " in " + printable.Count(len(t.Priorities), "priority", "priorities")
}

// IsSubset is true if the channel uses only a subset of the endpoints.
func (t Tree) IsSubset() bool { return len(t.Endpoints) < t.total }

func (t Tree) HasWeights() bool {
	of := func(e resolver.Endpoint) uint32 { return max(1, weight.FromEndpoint(e).Weight) }
	return slices.ContainsFunc(t.Endpoints, func(e resolver.Endpoint) bool { return of(e) != of(t.Endpoints[0]) })
}

// Config returns the configuration of understudy_priority. It shares values with other
// configurations of the same Policies, so nobody may modify it.
func (t Tree) Config() *lbconfig.Priority {
	policies := t.policies
	if policies == nil {
		policies, _ = NewPolicies(Settings{})
	}
	return policies.config(t.Priorities)
}

// With returns a copy of the tree in which o is the outlier detection that the cluster configures,
// without a child policy, or nil. The channel's settings override it. If reresolves is true, the
// priorities pass on requests for re-resolution.
func (t Tree) With(reresolves bool, o *lbconfig.OutlierDetection) Tree {
	t.Priorities = slices.Clone(t.Priorities)
	for i := range t.Priorities {
		p := &t.Priorities[i]
		p.ignoreReresolution, p.outlierDetection = p.ignoreReresolution && !reresolves, o
	}
	return t
}

// Settings are the settings of the policies in a tree. EndpointPolicy determines the type of a
// policy, so it must not change while a channel exists.
type Settings options.Settings

// Join returns a tree with the priorities of all trees, in order (gRFC A37). It applies the
// settings, and chooses a subset of the endpoints if the settings require this. Two trees must not
// have children with the same name (see Translator.Name and Plain).
func (p *Policies) Join(trees ...Tree) Tree {
	var joined Tree
	if len(trees) == 1 {
		joined = trees[0] // avoid copying, because most channels have only one tree
		trees = nil
	}
	for _, tree := range trees {
		joined.Endpoints = append(joined.Endpoints, tree.Endpoints...)
		joined.Priorities = append(joined.Priorities, tree.Priorities...)
	}
	joined.policies, joined.total = p, len(joined.Endpoints)
	joined = joined.subset(p.settings)
	if options.Settings(p.settings).InOneList() {
		joined = joined.inOneList()
	}
	return joined
}
