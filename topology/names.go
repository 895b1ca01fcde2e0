package topology

import "strconv"

// member is a locality of a cluster.
type member struct{ cluster, locality string }

// child is a child of understudy_priority, and the localities below it.
type child struct {
	name    string
	members []member
	// addresses holds the addresses of its endpoints, only where a locality is in
	// several priorities: otherwise localities tell priorities apart.
	addresses map[string]bool
}

// childNames names the children of understudy_priority, one for each priority, and
// remembers the names from update to update (gRFC A56, "LB Policy Configuration").
// A name that is gone is never given again. The zero value has given none.
type childNames struct {
	next int
	last []child
}

// assign returns the children for priorities, each given by its members, and the state
// for the next update. It does not modify n. addresses returns those of a priority.
// From the first priority to the last, each takes the name of the child that had most
// of its members, if the name is still free. Among equals that is the child that had
// most of its addresses, where a locality was in several priorities, then the child
// that had the same priority before, then the highest:
//
//	before: child0 {a}, child1 {b c}
//	after:  {b} {c}       ->  child1 {b}, child2 {c}   b keeps its connections
//	        {a d} {b c}   ->  child0 {a d}, child1 {b c}
//	        {c a} {b}     ->  child0 {c a}, child1 {b}
func (n childNames) assign(priorities [][]member, addresses func(priority int) []string) ([]child, childNames) {
	holders := make(map[member][]int)
	for i, c := range n.last {
		for _, m := range c.members {
			holders[m] = append(holders[m], i)
		}
	}
	keep := repeats(priorities)
	taken := make([]bool, len(n.last))
	children := make([]child, 0, len(priorities))
	for priority, members := range priorities {
		c := child{members: members}
		if keep {
			c.addresses = make(map[string]bool)
			for _, address := range addresses(priority) {
				c.addresses[address] = true
			}
		}
		shared := func(i int) (count int) {
			if n.last[i].addresses != nil {
				for _, address := range addresses(priority) {
					if n.last[i].addresses[address] {
						count++
					}
				}
			}
			return count
		}
		if best := bestHolder(holders, taken, priority, members, shared); best >= 0 {
			taken[best] = true
			c.name = n.last[best].name
		} else {
			c.name = "child" + strconv.Itoa(n.next)
			n.next++
		}
		children = append(children, c)
	}
	n.last = children
	return children, n
}

// repeats returns whether a member is in several priorities.
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

// bestHolder returns the index of the child whose name the priority takes, -1 for none.
func bestHolder(holders map[member][]int, taken []bool, priority int, members []member, shared func(child int) int) int {
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
		if best < 0 || n > held[best] || n == held[best] && closer(shared(i)-shared(best), i == priority) {
			best = i
		}
	}
	return best
}

// closer decides whether the second of two children that had equally many of a
// priority's members is closer to it: by how many more of its addresses that one had,
// then by whether it had its place.
func closer(more int, same bool) bool { return more > 0 || more == 0 && same }
