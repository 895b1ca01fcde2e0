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
	// only if a locality may be in several children, because several priorities contain it or because
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
// earlier priority has taken that name. In a tie, it takes the name of the child with the same
// index. If that child is not in the tie, it takes the name of the first child in the tie:
//
//	before: child0 {a}, child1 {b c}
//	after:  {b} {c}       ->  child1 {b}, child2 {c}   b keeps its connections
//	        {a d} {b c}   ->  child0 {a d}, child1 {b c}
//	        {c a} {b}     ->  child0 {c a}, child1 {b}
//
// If a locality was in several priorities, or if the priorities are near groups, a priority prefers
// the child that had most of its addresses. assignmentOrder returns the order in which priorities
// take names.
func (n childNames) assign(priorities [][]member, near bool, addresses func(priority int) map[string]bool) ([]child, childNames) {
	holders := make(map[member][]int)
	for i, c := range n.last {
		for _, m := range c.members {
			holders[m] = append(holders[m], i)
		}
	}
	keepAddresses := near || hasDuplicates(priorities)
	compareAddresses := keepAddresses || slices.ContainsFunc(n.last, func(c child) bool { return c.addresses != nil })
	children := make([]child, len(priorities))
	for priority, members := range priorities {
		children[priority].members = members
		if compareAddresses {
			children[priority].addresses = addresses(priority)
		}
	}
	taken := make([]bool, len(n.last))
	for _, priority := range n.assignmentOrder(children, holders) {
		c := &children[priority]
		if best := n.bestPrevious(c, priority, holders, taken); best >= 0 {
			taken[best] = true
			c.name = n.last[best].name
		} else {
			c.name = "child" + strconv.Itoa(n.next)
			n.next++
		}
	}
	for i := range children {
		if !keepAddresses {
			children[i].addresses = nil
		}
	}
	n.last = children
	return children, n
}

// assignmentOrder returns the order in which priorities take names. Priorities with a usable
// endpoint whose address was in the previous update come first, then other priorities with a usable
// endpoint, then all others. Otherwise, a priority whose endpoints are all draining could take the
// name and the connections of a lower priority with the same locality.
func (n childNames) assignmentOrder(children []child, holders map[member][]int) []int {
	order, classes := make([]int, len(children)), make([]int, len(children))
	for priority := range children {
		order[priority], classes[priority] = priority, n.orderClass(&children[priority], holders)
	}
	slices.SortStableFunc(order, func(a, b int) int { return classes[a] - classes[b] })
	return order
}

func (n childNames) orderClass(c *child, holders map[member][]int) int {
	class := 2
	for address, isUsable := range c.addresses {
		if !isUsable {
			continue
		}
		class = 1
		for _, m := range c.members {
			for _, i := range holders[m] {
				if _, wasPresent := n.last[i].addresses[address]; wasPresent {
					return 0
				}
			}
		}
	}
	return class
}

func (c *child) sharedAddresses(other *child) (count int) {
	for address := range c.addresses {
		if _, isShared := other.addresses[address]; isShared {
			count++
		}
	}
	return count
}

func hasDuplicates(priorities [][]member) bool {
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

// bestPrevious returns the index of the previous child whose name c takes over, or -1 if c must get
// a new name.
func (n childNames) bestPrevious(c *child, priority int, holders map[member][]int, taken []bool) int {
	memberCounts := make([]int, len(taken))
	for _, m := range c.members {
		for _, i := range holders[m] {
			memberCounts[i]++
		}
	}
	best := -1
	for i, count := range memberCounts {
		if count == 0 || taken[i] {
			continue
		}
		if best >= 0 {
			comparison := cmp.Or(cmp.Compare(c.sharedAddresses(&n.last[i]), c.sharedAddresses(&n.last[best])), cmp.Compare(count, memberCounts[best]))
			if comparison < 0 || comparison == 0 && i != priority {
				continue
			}
		}
		best = i
	}
	return best
}
