// Package topology translates the answers of sources into updates for a channel. An update has
// endpoints, with their paths and weights, and the configuration of the policy tree.
//
// The tree always has the same shape:
//
//	understudy_priority
//	  understudy_outlier_detection           one for each priority
//	    understudy_drop
//	      understudy_weighted_target         one child for each locality
//	        understudy_weighted_round_robin  one child for each endpoint; or understudy_endpoint_policy
//
// Because of that, an update never changes the type of a policy, which would close all connections
// below it. A path has two elements, the child of understudy_priority and the locality.
//
// Children keep their names across updates (gRFC A56, "LB Policy Configuration"). So an endpoint
// keeps its connections when weights, other endpoints or even its own priority change.
//
// There are no goroutines, clocks or sockets in here, and this package doesn't register the
// policies.
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

// Tree has the endpoints and priorities of a mechanism, or of all mechanisms in an Update.
type Tree struct {
	// Endpoints are in priority order. Paths (package hierarchy) and weights (grpc's
	// experimental/balancer/weight) are in their attributes.
	Endpoints []resolver.Endpoint
	// Why explains why none of the endpoints can receive calls. It's "" if at least one can.
	Why        string
	Priorities []TreePriority
}

// Update is what a resolver sends to a channel.
type Update struct {
	Tree
	policies *Policies
	total    int // number of endpoints before subsetting
}

type TreePriority struct {
	// Child is the name of the child of understudy_priority, which is also the first element of its
	// endpoints' paths.
	Child string
	// Name is what users see: the localities, e.g. "us-east/a, us-east/b", or the name of a target.
	Name    string
	Cluster string
	// Why explains why none of the priority's endpoints can receive calls. It's "" if at least one
	// can.
	Why string

	continuesPriority  bool // in the source's answer, this is still the same priority as the previous one
	ignoreReresolution bool
	drops              []lbconfig.DropCategory
	localities         []treeLocality // same order as Tree.Endpoints
	outlierDetection   *lbconfig.OutlierDetection
}

type treeLocality struct {
	name      string
	weight    uint32
	endpoints int
}

// Size describes the update in words, e.g. "20 of 5000 endpoints in 1 priority".
func (u Update) Size() string {
	endpoints := printable.Count(len(u.Endpoints), "endpoint", "endpoints")
	if u.IsSubset() {
		endpoints = fmt.Sprintf("%d of %s", len(u.Endpoints), printable.Count(u.total, "endpoint", "endpoints"))
	}
	return endpoints + " in " + printable.Count(len(u.Priorities), "priority", "priorities")
}

func (u Update) IsSubset() bool { return len(u.Endpoints) < u.total }

func (t Tree) HasWeights() bool {
	of := func(e resolver.Endpoint) uint32 { return max(1, weight.FromEndpoint(e).Weight) }
	return slices.ContainsFunc(t.Endpoints, func(e resolver.Endpoint) bool { return of(e) != of(t.Endpoints[0]) })
}

// Config returns the configuration of understudy_priority. Don't modify it: other configurations of
// the same Policies may share parts of it.
func (u Update) Config() *lbconfig.Priority { return u.policies.config(u.Priorities) }

// With returns a copy of the tree that uses o as the cluster's outlier detection. o has no child
// policy and may be nil. The channel's settings take precedence over it. If resolveNow is true, the
// priorities pass on requests for re-resolution.
func (t Tree) With(resolveNow bool, o *lbconfig.OutlierDetection) Tree {
	t.Priorities = slices.Clone(t.Priorities)
	for i := range t.Priorities {
		p := &t.Priorities[i]
		p.ignoreReresolution, p.outlierDetection = p.ignoreReresolution && !resolveNow, o
	}
	return t
}

// Settings configures the policies in a tree. EndpointPolicy must not change during the life of a
// channel, since it determines the type of a policy.
type Settings options.Settings

// Combine concatenates the priorities of all trees (gRFC A37), applies the settings and, if they ask
// for it, picks a subset of the endpoints. No two trees may have children with the same name, see
// Translator.Name and Plain.
func (p *Policies) Combine(trees ...Tree) Update {
	u := Update{policies: p}
	if len(trees) == 1 {
		u.Tree = trees[0] // most channels only have one, so avoid copying it
		trees = nil
	}
	for _, tree := range trees {
		u.Endpoints = append(u.Endpoints, tree.Endpoints...)
		u.Priorities = append(u.Priorities, tree.Priorities...)
	}
	u.total = len(u.Endpoints)
	u.Tree = u.subset(p.settings)
	if options.Settings(p.settings).InOneList() {
		u.Tree = u.inOneList()
	}
	return u
}
