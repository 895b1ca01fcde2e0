// Package clusters flattens a cluster into an ordered list of discovery mechanisms (gRFC A37). A
// cluster that is not an aggregate is a single mechanism. An aggregate has the mechanisms of its
// children, in order, recursively.
//
//	A has the children B and C, C has the children D, B and E   ->   B, D, E
//
// "If an underlying cluster appears more than once in the list of clusters, only one discovery
// mechanism entry should be created for it, in the earliest position in the list in which it is
// seen." One thing differs from gRFC A37, in which the whole list fails if a cluster cannot be
// resolved: here that cluster becomes an entry with an error, and we can still use the others.
package clusters

import (
	"fmt"
	"slices"
)

const (
	// MaxDepth is the maximum number of clusters on the shortest path to a cluster. "The tree of
	// aggregate clusters has a depth limit of 16."
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
	// Parent is the aggregate that contains the cluster, or "" for the first cluster.
	Parent string
	Err    error
	// Waiting means that the cluster has not been received yet. When it is received, it may turn out
	// to be an aggregate and be replaced by several entries.
	Waiting bool
}

// Resolve returns the discovery mechanisms of the cluster with the name first. The list has at
// least one entry. lookup returns a cluster by its name. lookedUp contains the names that Resolve
// has passed to lookup, in order.
func Resolve(first string, lookup func(name string) Cluster) (list []Entry, lookedUp []string) {
	r := resolution{found: map[string]*foundCluster{first: {depth: 1}}}
	for queue := []string{first}; len(queue) > 0; queue = queue[1:] {
		c := r.found[queue[0]]
		if c.depth > MaxDepth {
			break
		}
		lookedUp = append(lookedUp, queue[0])
		if c.Cluster = lookup(queue[0]); c.Err != nil {
			c.Children = nil
		}
		for _, child := range c.Children {
			if r.found[child] == nil && len(r.found) < MaxClusters {
				r.found[child] = &foundCluster{depth: c.depth + 1}
				queue = append(queue, child)
			}
		}
	}
	r.visit(Entry{Name: first}, nil)
	return r.list, lookedUp
}

type resolution struct {
	found  map[string]*foundCluster
	list   []Entry
	isFull bool // the error about more than MaxClusters clusters is in list
}

type foundCluster struct {
	Cluster
	depth          int // the number of clusters on the shortest path to it
	listed, walked bool
}

// path has the clusters from the first one to e's parent.
func (r *resolution) visit(e Entry, path []string) {
	c := r.found[e.Name]
	switch {
	case c == nil && r.isFull:
		return
	case c == nil:
		r.isFull, c = true, new(foundCluster)
		e.Err = fmt.Errorf("cluster %.100q and those after it are ignored: there are more than %d clusters: %s", e.Name, MaxClusters, formatPath(path, e.Name))
	case slices.Contains(path, e.Name):
		e.Err = fmt.Errorf("cluster %.100q names itself: %s", e.Name, formatPath(path, e.Name))
	case c.walked:
		return
	case c.depth > MaxDepth:
		e.Err = fmt.Errorf("cluster %.100q is at depth %d, want at most %d: %s", e.Name, c.depth, MaxDepth, formatPath(path, e.Name))
	case c.Err != nil:
		e.Err = fmt.Errorf("cluster %.100q%s: %w", e.Name, namedBy(path), c.Err)
	case len(c.Children) > 0:
		c.walked = true
		for _, child := range c.Children {
			r.visit(Entry{Name: child, Parent: e.Name}, append(path, e.Name))
		}
		return
	}
	if e.Waiting = c.Waiting && e.Err == nil; !c.listed {
		c.listed, r.list = true, append(r.list, e)
	}
}

// A path may be longer than MaxDepth. We show its end.
func formatPath(path []string, name string) (text string) {
	if n := len(path); n > MaxDepth {
		path, text = path[n-MaxDepth:], "… -> "
	}
	for _, n := range path {
		text += fmt.Sprintf("%.100s -> ", n)
	}
	return fmt.Sprintf("%s%.100s", text, name)
}

func namedBy(path []string) string {
	if len(path) == 0 {
		return ""
	}
	last := len(path) - 1
	return " (named by " + formatPath(path[:last], path[last]) + ")"
}
