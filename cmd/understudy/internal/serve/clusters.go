package serve

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"
)

// reading is the current content of a source, i.e. of a file or a target of --from.
type reading struct {
	source string // the file's path, or the target without secrets; if we couldn't read a directory, its path
	// keyed by name. If it's nil, we don't know the clusters, e.g. because the file is just being
	// written, and keep serving what we had from this source. A nil cluster is in the file but has
	// no endpoints.
	clusters map[string]*clusterConfig
	problem  error
}

// clusters decides what to serve, given what all sources have. It doesn't do any I/O, and the time
// is an argument. With a cluster x in two files:
//
//	a.yaml   b.yaml  served
//	x                x of a
//	x        x       x of a; b is rejected, as x is already in a
//	invalid  x       x of a as it was; b is rejected
//	         x       x of b
//	                 x of b as it was, until delay is over
//
// We need the delay because files may vanish for a moment while they're renamed or rewritten, and
// clients would drop the cluster as soon as we remove it.
type clusters struct {
	delay    time.Duration
	served   map[string]servedCluster // keyed by cluster name
	bySource map[string][]string      // names that we last had from each source; a directory has those of all its files
}

type servedCluster struct {
	cluster      *clusterConfig
	source       string
	missingSince time.Time // when the cluster vanished from all sources; zero if it hasn't
}

type changes struct {
	updated          []string // added or changed
	missing, removed []string
	problems         map[string]error    // keyed by source
	kept             map[string][]string // clusters whose last good content we serve, keyed by source
	incomplete       bool                // some source was never readable, so there may be more clusters
}

func (c *clusters) index() {
	all, missing := make(map[string][]string), make(map[string][]string)
	for _, name := range slices.Sorted(maps.Keys(c.served)) {
		s, to := c.served[name], all
		if !s.missingSince.IsZero() {
			to = missing
		}
		for _, source := range []string{s.source, filepath.Dir(s.source)} {
			to[source] = append(to[source], name)
		}
	}
	maps.DeleteFunc(missing, func(source string, _ []string) bool { return all[source] != nil })
	maps.Copy(all, missing)
	c.bySource = all
}

func (c *clusters) update(now time.Time, readings []reading) changes {
	// We look at all sources before we decide anything, so it's fine if two files swap their
	// clusters.
	result := changes{problems: make(map[string]error), kept: make(map[string][]string)}
	next := make(map[string]servedCluster)
	keep := func(source string, names []string) {
		for _, name := range names {
			if _, taken := next[name]; !taken {
				next[name] = servedCluster{cluster: c.served[name].cluster, source: c.served[name].source}
				result.kept[source] = append(result.kept[source], name)
			}
		}
	}
	for _, r := range readings {
		if r.problem != nil {
			result.problems[r.source] = r.problem
		}
		if r.clusters == nil {
			names := c.bySource[r.source]
			result.incomplete = result.incomplete || len(names) == 0 && r.problem != nil
			keep(r.source, names)
		}
	}
	rejected := make(map[string]bool)
	for _, inUse := range []bool{true, false} {
		for _, r := range readings {
			for _, name := range slices.Sorted(maps.Keys(r.clusters)) {
				before, known := c.served[name]
				other, taken := next[name]
				switch cluster := r.clusters[name]; {
				case (before.source == r.source) != inUse:
				case cluster == nil && !known:
					result.incomplete = true
				case taken && other.source != r.source:
					rejected[r.source] = true
					result.problems[r.source] = errors.Join(result.problems[r.source], fmt.Errorf("%s: cluster %q is already in %s", r.source, name, other.source))
				case cluster == nil:
					keep(r.source, []string{name})
				default:
					next[name] = servedCluster{cluster: cluster, source: r.source}
				}
			}
		}
	}
	for source := range rejected {
		keep(source, c.bySource[source])
	}
	c.replace(now, next, &result)
	c.index()
	return result
}

func (c *clusters) replace(now time.Time, next map[string]servedCluster, result *changes) {
	for _, name := range slices.Sorted(maps.Keys(next)) {
		s := next[name]
		if before, known := c.served[name]; !known || !proto.Equal(before.cluster.Cluster, s.cluster.Cluster) {
			result.updated = append(result.updated, name)
		} else {
			s.cluster = before.cluster
		}
		c.served[name] = s
	}
	for _, name := range slices.Sorted(maps.Keys(c.served)) {
		s := c.served[name]
		if _, exists := next[name]; exists {
			continue
		}
		if s.missingSince.IsZero() {
			s.missingSince = now
			c.served[name] = s
			result.missing = append(result.missing, name)
		}
		if now.Sub(s.missingSince) >= c.delay {
			delete(c.served, name)
			result.removed = append(result.removed, name)
		}
	}
}

// clusterConfig is a cluster as configured. If it's STATIC, we serve its endpoints over EDS, which
// all clients support.
type clusterConfig struct {
	*clusterv3.Cluster
	endpoints *endpointv3.ClusterLoadAssignment // nil if the endpoints come from another server
}

func newClusterConfig(c *clusterv3.Cluster) *clusterConfig {
	g := &clusterConfig{Cluster: c}
	if c.GetClusterType() == nil && c.GetType() == clusterv3.Cluster_STATIC {
		g.endpoints = c.GetLoadAssignment()
		g.endpoints.ClusterName = c.GetName()
	}
	return g
}

func newStatic(endpoints *endpointv3.ClusterLoadAssignment) *clusterConfig {
	return newClusterConfig(&clusterv3.Cluster{Name: endpoints.GetClusterName(), LoadAssignment: endpoints})
}

func (g *clusterConfig) endpointCount() int {
	n := 0
	for _, locality := range g.endpoints.GetEndpoints() {
		n += len(locality.GetLbEndpoints())
	}
	return n
}
