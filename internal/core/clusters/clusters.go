// Package clusters flattens a cluster into an ordered list of discovery mechanisms (gRFC A37). A
// plain cluster becomes a single mechanism. An aggregate is replaced by the mechanisms of its
// children, in order and recursively:
//
//	A has the children B and C, C has the children D, B and E   ->   B, D, E
//
// "If an underlying cluster appears more than once in the list of clusters, only one discovery
// mechanism entry should be created for it, in the earliest position in the list in which it is
// seen."
//
// We differ from gRFC A37 in one respect. There, the whole list fails if one of its clusters can't
// be resolved. Here, that cluster becomes an entry with an error, so we can still use the others.
package clusters

import (
	"fmt"
	"slices"
)

const (
	// MaxDepth limits how deep clusters can be nested, measured along the shortest path. "The tree
	// of aggregate clusters has a depth limit of 16."
	MaxDepth = 16
	// MaxClusters limits the number of clusters, aggregates included. gRFC A37 has no such limit,
	// but every mechanism needs a priority and possibly a resolver of its own.
	MaxClusters = 256
)

// Cluster is what we know about a cluster. If it has Children, it's an aggregate.
type Cluster struct {
	Children []string
	Err      error // why we can't use the cluster, which has no Children then
	Waiting  bool
}

type Entry struct {
	Name string
	// Parent is the aggregate that contains the cluster, or "" for the first cluster.
	Parent string
	Err    error
	// Waiting means that we haven't received the cluster yet. It may turn out to be an aggregate,
	// in which case several entries will replace this one.
	Waiting bool
}

// Resolve flattens the cluster called first. The list always has at least one entry. Every name
// that was passed to lookup is in lookedUp, in order.
func Resolve(first string, lookup func(name string) Cluster) (list []Entry, lookedUp []string) {
	r := resolution{found: map[string]*foundCluster{first: {depth: 1}}}
	for queue := []string{first}; len(queue) > 0; queue = queue[1:] {
		c := r.found[queue[0]]
		if c.depth > MaxDepth {
			break
		}
		lookedUp = append(lookedUp, queue[0])
		c.Cluster = lookup(queue[0])
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
	isFull bool
}

type foundCluster struct {
	Cluster
	depth          int // length of the shortest path to it
	listed, walked bool
}

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

// formatPath only shows the end of the path if it's longer than MaxDepth.
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
