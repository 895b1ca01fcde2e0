package topology

import (
	"cmp"
	"slices"
	"strconv"
)

type childLocality struct{ cluster, locality string }

type child struct {
	name              string
	localities        []childLocality
	addresses, usable []string // first addresses of all endpoints and of the usable ones, only set if a locality may be in several children
}

// childNames names the children of understudy_priority. A child keeps its name across updates (gRFC
// A56, "LB Policy Configuration"). Once a child is gone, its name is never used again.
type childNames struct {
	next int
	last []child
	// shared is set if a locality may be in several children of last, either because several
	// priorities contain it or because priorities were split by distance.
	shared bool
}

func (n *childNames) unnamedChildren(groups []group, cluster string) []child {
	children := make([]child, len(groups))
	shared, holders := false, make(map[childLocality]bool)
	for i, g := range groups {
		shared = shared || g.name != ""
		for j := range g.Localities {
			l := childLocality{cluster, NameOf(&g.Localities[j])}
			shared = shared || holders[l]
			holders[l] = true
			children[i].localities = append(children[i].localities, l)
		}
	}
	if shared || n.shared {
		for i := range groups {
			for e := range endpointsOf(groups[i].Priority) {
				children[i].addresses = append(children[i].addresses, firstAddress(e))
				if isUsable(e.Health) {
					children[i].usable = append(children[i].usable, firstAddress(e))
				}
			}
		}
	}
	n.shared = shared
	return children
}

// Each child takes the name of the old child that had most of its localities, provided that name
// isn't taken yet. If there's a tie, we prefer the old child with the same index, then the first
// one:
//
//	before: child0 {a}, child1 {b c}
//	after:  {b} {c}       ->  child1 {b}, child2 {c}   b keeps its connections
//	        {a d} {b c}   ->  child0 {a d}, child1 {b c}
//	        {c a} {b}     ->  child0 {c a}, child1 {b}
//
// If a locality can be in several children, we count endpoints first, and the order in which
// children get their names matters. We start with children that have a usable endpoint we knew
// before, followed by those with any usable endpoint, and then the rest. Otherwise, a draining
// priority could steal the name, and with it the connections, of a lower priority with the same
// locality.
func (n *childNames) assign(groups []group, cluster string) []child {
	children := n.unnamedChildren(groups, cluster)
	holders, holderOf := make(map[childLocality][]int), make(map[string]int)
	for i, c := range n.last {
		for _, l := range c.localities {
			holders[l] = append(holders[l], i)
		}
		for _, address := range c.addresses {
			holderOf[address] = i
		}
	}
	order, classes := make([]int, len(children)), make([]int, len(children))
	for i, c := range children {
		order[i], classes[i] = i, 2-min(1, len(c.usable))
		if slices.ContainsFunc(c.usable, func(address string) bool { _, known := holderOf[address]; return known }) {
			classes[i] = 0
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return classes[a] - classes[b] })
	taken := make([]bool, len(n.last))
	for _, i := range order {
		if best := n.bestPrevious(children[i], i, holders, holderOf, taken); best >= 0 {
			taken[best] = true
			children[i].name = n.last[best].name
		} else {
			children[i].name = "child" + strconv.Itoa(n.next)
			n.next++
		}
	}
	n.last = children
	return children
}

// bestPrevious returns -1 if c needs a new name.
func (n *childNames) bestPrevious(c child, index int, holders map[childLocality][]int, holderOf map[string]int, taken []bool) int {
	localities, endpoints := make([]int, len(taken)), make([]int, len(taken))
	for _, l := range c.localities {
		for _, i := range holders[l] {
			localities[i]++
		}
	}
	for _, address := range c.addresses {
		if i, known := holderOf[address]; known {
			endpoints[i]++
		}
	}
	best := -1
	for i := range taken {
		if localities[i] == 0 || taken[i] {
			continue
		}
		if best >= 0 {
			comparison := cmp.Or(cmp.Compare(endpoints[i], endpoints[best]), cmp.Compare(localities[i], localities[best]))
			if comparison < 0 || comparison == 0 && i != index {
				continue
			}
		}
		best = i
	}
	return best
}
