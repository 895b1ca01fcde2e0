// Package clusters flattens a cluster into an ordered list of discovery mechanisms (gRFC A37). A
// cluster that is not an aggregate is a single mechanism. An aggregate has the mechanisms of its
// children, in order, recursively.
//
//	A has the children B and C, C has the children D, B and E   ->   B, D, E
//
// "If an underlying cluster appears more than once in the list of clusters, only one discovery
// mechanism entry should be created for it, in the earliest position in the list in which it is
// seen." A cluster that cannot be resolved becomes an entry with an error, so that the other
// clusters can be used. This differs from gRFC A37, in which the whole list fails.
package clusters

import (
	"fmt"
	"slices"
	"strings"
)

const (
	// MaxDepth is the maximum number of clusters on a path. "The tree of aggregate clusters has a
	// depth limit of 16."
	MaxDepth = 16
	// MaxClusters is the maximum number of clusters, including aggregates. gRFC A37 has no limit, but
	// each mechanism needs a priority and possibly a resolver.
	MaxClusters = 256
)

// Cluster describes what is known about a cluster. The cluster is an aggregate if it has Children.
type Cluster struct {
	Children []string
	// Err is the reason why the cluster cannot be used. If Err is set, Children is ignored.
	Err     error
	Waiting bool // the cluster has not been received yet
}

// Entry is one discovery mechanism of a resolved cluster.
type Entry struct {
	Name string
	// Parent is the aggregate that contains the cluster, or "" for the first cluster. Index is the
	// cluster's index among Parent's children.
	Parent string
	Index  int
	Err    error
	// Waiting means that the cluster has not been received yet. When it is received, it may turn out
	// to be an aggregate and be replaced by several entries.
	Waiting bool
}

// Resolve returns the discovery mechanisms of the cluster with the name first. The list has at
// least one entry. lookup returns a cluster by its name. lookedUp contains the names that Resolve
// has passed to lookup, in order.
func Resolve(first string, lookup func(name string) Cluster) (list []Entry, lookedUp []string) {
	r := resolution{lookup: lookup, visited: make(map[string]*visitedCluster), tooDeep: make(map[string]int), listed: make(map[string]bool), omitted: make(map[int]bool)}
	r.visit(Entry{Name: first}, nil)
	for i, e := range r.list {
		if !r.omitted[i] {
			list = append(list, e)
		}
	}
	return list, r.lookedUp
}

type resolution struct {
	lookup       func(string) Cluster
	list         []Entry
	lookedUp     []string
	visited      map[string]*visitedCluster
	tooDeep      map[string]int // the index in list of each cluster that is too deep on all paths so far
	omitted      map[int]bool   // indexes of entries of list to omit, because a shorter path to the cluster was found later
	listed       map[string]bool
	limitReached bool // the error about more than MaxClusters clusters is in list
}

type visitedCluster struct {
	Cluster
	depth     int
	truncated bool
}

// visit adds the discovery mechanisms of e's cluster. path contains the clusters from the first one
// to e's parent. truncated reports whether a descendant was omitted because its path is too long or
// contains a cycle.
func (r *resolution) visit(e Entry, path []string) (truncated bool) {
	if slices.Contains(path, e.Name) {
		e.Err = fmt.Errorf("cluster %s names itself: %s", quote(e.Name), formatPath(path, e.Name))
		r.add(e)
		return true
	}
	cluster := r.visited[e.Name]
	switch _, isTooDeep := r.tooDeep[e.Name]; {
	case cluster != nil && (!cluster.truncated || len(path) >= cluster.depth):
		return cluster.truncated
	case isTooDeep && len(path) == MaxDepth:
		return true
	case cluster == nil && !isTooDeep && len(r.visited)+len(r.tooDeep) >= MaxClusters:
		if !r.limitReached {
			r.limitReached = true
			e.Err = fmt.Errorf("cluster %s and those after it are ignored: there are more than %d clusters: %s", quote(e.Name), MaxClusters, formatPath(path, e.Name))
			r.add(e)
		}
		return false
	case len(path) == MaxDepth:
		e.Err = fmt.Errorf("cluster %s is at depth %d, want at most %d: %s", quote(e.Name), MaxDepth+1, MaxDepth, formatPath(path, e.Name))
		r.tooDeep[e.Name] = len(r.list)
		r.list = append(r.list, e)
		return true
	case cluster == nil:
		r.lookedUp = append(r.lookedUp, e.Name)
		cluster = &visitedCluster{Cluster: r.lookup(e.Name)}
		r.visited[e.Name] = cluster
		if i, isTooDeep := r.tooDeep[e.Name]; isTooDeep {
			r.omitted[i] = true
			delete(r.tooDeep, e.Name)
		}
	}
	cluster.depth, cluster.truncated = len(path), false
	if cluster.Err == nil && len(cluster.Children) > 0 {
		path = append(path, e.Name)
		for i, child := range cluster.Children {
			cluster.truncated = r.visit(Entry{Name: child, Parent: e.Name, Index: i}, path) || cluster.truncated
		}
		return cluster.truncated
	}
	if e.Waiting = cluster.Waiting; cluster.Err != nil {
		e.Err = fmt.Errorf("cluster %s%s: %w", quote(e.Name), namedBy(path), cluster.Err)
	}
	r.add(e)
	return false
}

func (r *resolution) add(e Entry) {
	if !r.listed[e.Name] {
		r.listed[e.Name] = true
		r.list = append(r.list, e)
	}
}

func formatPath(path []string, name string) string {
	var names []string
	for _, n := range append(slices.Clone(path), name) {
		names = append(names, truncate(n))
	}
	return strings.Join(names, " -> ")
}

func namedBy(path []string) string {
	if len(path) == 0 {
		return ""
	}
	last := len(path) - 1
	return " (named by " + formatPath(path[:last], path[last]) + ")"
}

func quote(name string) string { return fmt.Sprintf("%q", truncate(name)) }

func truncate(name string) string {
	const maxLen = 100
	if len(name) <= maxLen {
		return name
	}
	return strings.ToValidUTF8(name[:maxLen], "") + "…"
}
