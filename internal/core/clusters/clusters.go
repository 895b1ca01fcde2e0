// Package clusters makes the ordered list of discovery mechanisms of a cluster (gRFC
// A37): a cluster that is no aggregate is its own and only one; an aggregate has those of
// the clusters that it names, in order, recursively.
//
//	A names B and C, C names D, B and E   ->   B, D, E
//
// "If an underlying cluster appears more than once in the list of clusters, only one
// discovery mechanism entry should be created for it, in the earliest position in the
// list in which it is seen." A reference that leads nowhere is an entry of its own, with
// the reason, so that the others go on: A37 would fail the whole list.
package clusters

import (
	"fmt"
	"slices"
	"strings"
)

const (
	// MaxDepth is how many clusters may be on the way from the first to the last, both
	// counted: "The tree of aggregate clusters has a depth limit of 16."
	MaxDepth = 16
	// MaxClusters is how many clusters count, aggregates among them. It is ours: each
	// entry costs a priority and perhaps a resolver.
	MaxClusters = 256
)

// Cluster is what is known of a cluster.
type Cluster struct {
	// Children are the clusters that an aggregate names. All others have none.
	Children []string
	// Err says why the cluster cannot be used, whatever its children.
	Err error
	// Waiting means that nothing is known yet.
	Waiting bool
}

// Entry is one entry of the list.
type Entry struct {
	// Name is the cluster's. No two entries have the same.
	Name string
	// Parent is the aggregate that names it, "" for the first cluster, and Index the
	// place in its list, from 0.
	Parent string
	Index  int
	// Err says why it has no endpoints, in a line that names the way to it.
	Err error
	// Waiting means that nothing is known of it yet: it may become several entries.
	Waiting bool
}

// Resolve returns the list of the cluster first, at least one entry, and the names that
// it asked find for, in order. It asks once for each.
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
	seen   map[string]*place // what was visited
	deep   map[string]int    // what was only seen where it is too deep, to its place in the list
	gone   map[int]bool      // places in the list of what was then seen elsewhere
	listed map[string]bool
	full   bool // there are more than MaxClusters
}

// place is where a cluster was visited.
type place struct {
	Cluster
	depth int
	// cut means that the way to it kept something below it from being visited. A shorter
	// way may lead there.
	cut bool
}

// visit adds what the cluster of e stands for. The way leads to it, from the first
// cluster to the one that names it. It reports whether the way kept something out.
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
		if !r.full { // said once, of the first
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

// add adds an entry, unless there is one of that name.
func (r *resolution) add(e Entry) {
	if !r.listed[e.Name] {
		r.listed[e.Name] = true
		r.list = append(r.list, e)
	}
}

// show returns the way to a cluster.
func show(way []string, name string) string {
	var names []string
	for _, n := range append(slices.Clone(way), name) {
		names = append(names, cut(n))
	}
	return strings.Join(names, " -> ")
}

// by says which way led to a cluster, nothing where it is the first.
func by(way []string) string {
	if len(way) == 0 {
		return ""
	}
	last := len(way) - 1
	return " (named by " + show(way[:last], way[last]) + ")"
}

func quote(name string) string { return fmt.Sprintf("%q", cut(name)) }

// cut shortens a long name.
func cut(name string) string {
	const most = 100
	if len(name) <= most {
		return name
	}
	return strings.ToValidUTF8(name[:most], "") + "…"
}
