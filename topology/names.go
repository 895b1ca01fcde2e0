package topology

import "strconv"

// member is a locality of a cluster.
type member struct{ cluster, locality string }

// child is a child of understudy_priority, and the localities below it.
type child struct {
	name    string
	members []member
}

// childNames names the children of understudy_priority, one for each priority, and
// remembers the names from update to update (gRFC A56, "LB Policy Configuration").
// A name that is gone is never given again. The zero value has given none.
type childNames struct {
	next int
	last []child
}

// assign returns the children for priorities, each given by its members, and the
// state for the next update; n is not modified. From the first priority to the last,
// each takes the name, if not taken yet, of the child that had most of its members.
// Among equals that is the child that had the same priority before, then the highest:
//
//	before: child0 {a}, child1 {b c}
//	after:  {b} {c}       ->  child1 {b}, child2 {c}   b keeps its connections
//	        {a d} {b c}   ->  child0 {a d}, child1 {b c}
//	        {c a} {b}     ->  child0 {c a}, child1 {b}
func (n childNames) assign(priorities [][]member) ([]child, childNames) {
	holders := make(map[member][]int)
	for i, c := range n.last {
		for _, m := range c.members {
			holders[m] = append(holders[m], i)
		}
	}
	taken := make([]bool, len(n.last))
	children := make([]child, 0, len(priorities))
	for priority, members := range priorities {
		best := bestHolder(holders, taken, priority, members)
		if best < 0 {
			children = append(children, child{"child" + strconv.Itoa(n.next), members})
			n.next++
			continue
		}
		taken[best] = true
		children = append(children, child{n.last[best].name, members})
	}
	n.last = children
	return children, n
}

// bestHolder returns the index of the child that priority takes the name of, -1 for
// none.
func bestHolder(holders map[member][]int, taken []bool, priority int, members []member) int {
	held := make([]int, len(taken))
	for _, m := range members {
		for _, i := range holders[m] {
			held[i]++
		}
	}
	best := -1
	for i, n := range held {
		if n == 0 || taken[i] {
			continue
		}
		if best < 0 || n > held[best] || n == held[best] && i == priority {
			best = i
		}
	}
	return best
}
