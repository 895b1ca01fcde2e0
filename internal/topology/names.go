package topology

import (
	"cmp"
	"slices"
	"strconv"
)

type member struct{ cluster, locality string }

type child struct {
	name    string
	members []member
	// addresses maps the address of each endpoint to whether the endpoint can receive calls. It is set
	// only if a locality can be in several children, because several priorities have it or because
	// priorities are split into near groups.
	addresses map[string]bool
}

// childNames chooses the names of the children of understudy_priority, one for each priority. A
// child keeps its name in later updates (gRFC A56, "LB Policy Configuration"). The name of a
// removed child is never reused.
type childNames struct {
	next int
	last []child
}

// assign returns the children for priorities, each of which is a list of localities, and the state
// for the next update. It does not modify n. addresses returns the value of child.addresses for a
// priority.
//
// Each priority takes the name of the previous child that had most of its members, unless an
// earlier priority has taken that name. In a tie, it takes the name of the child at the same
// position, or else of the first child:
//
//	before: child0 {a}, child1 {b c}
//	after:  {b} {c}       ->  child1 {b}, child2 {c}   b keeps its connections
//	        {a d} {b c}   ->  child0 {a d}, child1 {b c}
//	        {c a} {b}     ->  child0 {c a}, child1 {b}
//
// If a locality was in several priorities, or if the priorities are near groups, a priority prefers
// the child that had most of its addresses. See turns for the order in which priorities choose.
func (n childNames) assign(priorities [][]member, near bool, addresses func(priority int) map[string]bool) ([]child, childNames) {
	holders := make(map[member][]int)
	for i, c := range n.last {
		for _, m := range c.members {
			holders[m] = append(holders[m], i)
		}
	}
	keep := near || repeats(priorities)
	compare := keep || slices.ContainsFunc(n.last, func(c child) bool { return c.addresses != nil })
	children := make([]child, len(priorities))
	for priority, members := range priorities {
		children[priority].members = members
		if compare {
			children[priority].addresses = addresses(priority)
		}
	}
	taken := make([]bool, len(n.last))
	for _, priority := range n.turns(children, holders) {
		c := &children[priority]
		if best := n.bestHolder(c, priority, holders, taken); best >= 0 {
			taken[best] = true
			c.name = n.last[best].name
		} else {
			c.name = "child" + strconv.Itoa(n.next)
			n.next++
		}
	}
	for i := range children {
		if !keep {
			children[i].addresses = nil
		}
	}
	n.last = children
	return children, n
}

// turns returns the order in which priorities choose names. Priorities with a usable endpoint whose
// address was in the previous update come first, then those with any usable endpoint, then the
// others. Otherwise, a priority whose endpoints are all draining could take the name and the
// connections of a lower priority with the same locality.
func (n childNames) turns(children []child, holders map[member][]int) []int {
	order, classes := make([]int, len(children)), make([]int, len(children))
	for priority := range children {
		order[priority], classes[priority] = priority, n.class(&children[priority], holders)
	}
	slices.SortStableFunc(order, func(a, b int) int { return classes[a] - classes[b] })
	return order
}

func (n childNames) class(c *child, holders map[member][]int) int {
	class := 2
	for address, healthy := range c.addresses {
		if !healthy {
			continue
		}
		class = 1
		for _, m := range c.members {
			for _, i := range holders[m] {
				if _, had := n.last[i].addresses[address]; had {
					return 0
				}
			}
		}
	}
	return class
}

func (c *child) shared(other *child) (count int) {
	for address := range c.addresses {
		if _, had := other.addresses[address]; had {
			count++
		}
	}
	return count
}

func repeats(priorities [][]member) bool {
	seen := make(map[member]bool)
	for _, members := range priorities {
		for _, m := range members {
			if seen[m] {
				return true
			}
			seen[m] = true
		}
	}
	return false
}

// bestHolder returns the index of the previous child whose name c takes over, or -1 if c gets a new
// name.
func (n childNames) bestHolder(c *child, priority int, holders map[member][]int, taken []bool) int {
	held := make([]int, len(taken))
	for _, m := range c.members {
		for _, i := range holders[m] {
			held[i]++
		}
	}
	best := -1
	for i, count := range held {
		if count == 0 || taken[i] {
			continue
		}
		if best >= 0 {
			more := cmp.Or(cmp.Compare(c.shared(&n.last[i]), c.shared(&n.last[best])), cmp.Compare(count, held[best]))
			if more < 0 || more == 0 && i != priority {
				continue
			}
		}
		best = i
	}
	return best
}
