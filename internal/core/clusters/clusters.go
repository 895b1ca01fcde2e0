// Package clusters flattens a cluster into an ordered list of discovery mechanisms (gRFC A37). A
// cluster that is not an aggregate is a single mechanism. An aggregate has the mechanisms of its
// children, in order, recursively.
//
//	A names B and C, C names D, B and E   ->   B, D, E
//
// "If an underlying cluster appears more than once in the list of clusters, only one discovery
// mechanism entry should be created for it, in the earliest position in the list in which it is
// seen." A cluster that cannot be resolved becomes an entry with an error, so that the other
// clusters can be used. In this, the package differs from gRFC A37, which lets the whole list fail.
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

// Cluster describes a cluster, as far as it is known.
type Cluster struct {
	Children []string
	// Err is the reason why the cluster cannot be used. If it is set, Children are ignored.
	Err     error
	Waiting bool
}

// Entry is one discovery mechanism of a resolved cluster.
type Entry struct {
	Name string
	// Parent is the aggregate that contains the cluster, or "" for the first cluster. Index is the
	// cluster's index among Parent's children.
	Parent string
	Index  int
	Err    error
	// Waiting means that the cluster has not been received yet. Once it has been, it may turn out to
	// be an aggregate and become several entries.
	Waiting bool
}

// Resolve returns the discovery mechanisms of the cluster named first; there is at least one. asked
// lists the names that Resolve passed to find, in order.
func Resolve(first string, find func(name string) Cluster) (list []Entry, asked []string) {
	r := resolution{find: find, seen: make(map[string]*place), deep: make(map[string]int), listed: make(map[string]bool), gone: make(map[int]bool)}
	r.visit(Entry{Name: first}, nil)
	for i, e := range r.list {
		if !r.gone[i] {
			list = append(list, e)
		}
	}
	return list, r.asked
}

type resolution struct {
	find   func(string) Cluster
	list   []Entry
	asked  []string
	seen   map[string]*place
	deep   map[string]int // clusters that are too deep on all paths so far, and the indexes of their errors in list
	gone   map[int]bool   // indexes in list of errors to omit, because the cluster was later found on a shorter path
	listed map[string]bool
	full   bool
}

type place struct {
	Cluster
	depth int
	cut   bool
}

// visit adds the discovery mechanisms of e's cluster. way is the path from the first cluster to e.
// cut reports whether a descendant was left out because its path is too long.
func (r *resolution) visit(e Entry, way []string) (cut bool) {
	if slices.Contains(way, e.Name) {
		e.Err = fmt.Errorf("cluster %s names itself: %s", quote(e.Name), show(way, e.Name))
		r.add(e)
		return true
	}
	at := r.seen[e.Name]
	switch _, deep := r.deep[e.Name]; {
	case at != nil && (!at.cut || len(way) >= at.depth):
		return at.cut
	case deep && len(way) == MaxDepth:
		return true
	case at == nil && !deep && len(r.seen)+len(r.deep) >= MaxClusters:
		if !r.full {
			r.full = true
			e.Err = fmt.Errorf("cluster %s and those after it are left out: there are more than %d clusters: %s", quote(e.Name), MaxClusters, show(way, e.Name))
			r.add(e)
		}
		return false
	case len(way) == MaxDepth:
		e.Err = fmt.Errorf("cluster %s is number %d on its way, want at most %d: %s", quote(e.Name), MaxDepth+1, MaxDepth, show(way, e.Name))
		r.deep[e.Name] = len(r.list)
		r.list = append(r.list, e)
		return true
	case at == nil:
		r.asked = append(r.asked, e.Name)
		at = &place{Cluster: r.find(e.Name)}
		r.seen[e.Name] = at
		if i, deep := r.deep[e.Name]; deep {
			r.gone[i] = true
			delete(r.deep, e.Name)
		}
	}
	at.depth, at.cut = len(way), false
	if at.Err == nil && len(at.Children) > 0 {
		way = append(way, e.Name)
		for i, child := range at.Children {
			at.cut = r.visit(Entry{Name: child, Parent: e.Name, Index: i}, way) || at.cut
		}
		return at.cut
	}
	if e.Waiting = at.Waiting; at.Err != nil {
		e.Err = fmt.Errorf("cluster %s%s: %w", quote(e.Name), by(way), at.Err)
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

func show(way []string, name string) string {
	var names []string
	for _, n := range append(slices.Clone(way), name) {
		names = append(names, cut(n))
	}
	return strings.Join(names, " -> ")
}

func by(way []string) string {
	if len(way) == 0 {
		return ""
	}
	last := len(way) - 1
	return " (named by " + show(way[:last], way[last]) + ")"
}

func quote(name string) string { return fmt.Sprintf("%q", cut(name)) }

func cut(name string) string {
	const most = 100
	if len(name) <= most {
		return name
	}
	return strings.ToValidUTF8(name[:most], "") + "…"
}
