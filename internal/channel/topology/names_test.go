package topology

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/understudy-lb/understudy/discovery"
)

// groupsOf parses lists such as "a b, c" and "1 2, 3-": localities a and b with endpoints 1 and 2 in
// priority 0, and locality c with the draining endpoint 3 in priority 1.
func groupsOf(localities, addresses string) (groups []group) {
	if localities == "" {
		return nil
	}
	endpoints := strings.Split(addresses, ",")
	for i, priority := range strings.Split(localities, ",") {
		var g group
		for name := range strings.FieldsSeq(priority) {
			g.Localities = append(g.Localities, discovery.Locality{Region: name})
		}
		for _, field := range strings.Fields(endpoints[min(i, len(endpoints)-1)]) {
			address, isDraining := strings.CutSuffix(field, "-")
			e := discovery.Endpoint{Addresses: []string{address}}
			if isDraining {
				e.Health = discovery.Draining
			}
			if l := g.Localities; len(l) > 0 {
				l[0].Endpoints = append(l[0].Endpoints, e)
			}
		}
		groups = append(groups, g)
	}
	return groups
}

func (n *childNames) update(groups []group) []child {
	return n.assign(groups, "cluster")
}

func namesOf(children []child) string {
	var names []string
	for _, c := range children {
		names = append(names, c.name)
	}
	return strings.Join(names, " ")
}

// If a locality is in several priorities, its endpoints decide which priority keeps which name. A
// priority with only draining endpoints must not take the name of a lower priority.
func TestNamesFollowEndpointsOfOneLocality(t *testing.T) {
	for _, test := range []struct{ title, before, addressesBefore, after, addressesAfter, want string }{
		{"one joins above", "a, a", "1, 2", "z, a, a", "9, 1, 2", "child2 child0 child1"},
		{"one joins above two that share a locality", "f, a f, a", "2 6, 3 7 8, 1", "z, f, a f, a", "9, 2 6, 3 7 8, 1", "child3 child0 child1 child2"},
		{"the first leaves", "a, a", "1, 2", "a", "2", "child1"},
		{"the second stays at its priority", "a, a", "1, 2", "z, a", "9, 2", "child2 child1"},
		{"they change places", "a, a", "1, 2", "a, a", "2, 1", "child1 child0"},
		{"one that drains moves above the other", "z, a, a", "9, 1, 2-", "a, a, z", "2-, 1, 9", "child2 child1 child0"},
		{"one that drains joins above the only one", "a", "1", "a, a", "2-, 1", "child1 child0"},
		{"most of one drains above the rest", "a, a", "1 2 3, 4", "a, a, a", "2- 3-, 1, 4", "child2 child0 child1"},
		{"one drains at its priority", "a, a", "1, 2", "a, a", "1-, 2", "child0 child1"},
		{"one drains, and the other gets a locality of it", "a b, a", "1 2, 3", "a b, a b", "1- 2-, 3 4", "child0 child1"},
		{"one has new endpoints, and the other gets a locality of it", "a b, a", "1 2, 3", "a b, a b", "5 6, 3 4", "child0 child1"},
		{"one that drained becomes healthy", "a, a", "1-, 2-", "a, a", "1, 2-", "child0 child1"},
		{"a new one joins above, and one leaves", "a, a", "1, 2", "a, a", "3, 1", "child1 child0"},
		{"all endpoints are replaced", "a, a", "1, 2", "a, a", "3, 4", "child0 child1"},
	} {
		t.Run(test.title, func(t *testing.T) {
			var names childNames
			names.update(groupsOf(test.before, test.addressesBefore))
			children := names.update(groupsOf(test.after, test.addressesAfter))
			if got := namesOf(children); got != test.want {
				t.Errorf("%s of %s, then %s of %s: %s, want %s", test.before, test.addressesBefore, test.after, test.addressesAfter, got, test.want)
			}
		})
	}
}

// A56, "LB Policy Configuration": "This gives us the ability to move existing
// children from one priority to another without having to recreate the child policy".
func TestNamesFollowLocalities(t *testing.T) {
	for _, test := range []struct{ title, updates, want string }{
		{"the first names", "a, b, c", "child0 child1 child2"},
		{"nothing changed", "a b, c; a b, c", "child0 child1"},
		{"the gRFC's example: priority 1 replaces priority 0", "a, b c; b, c", "child1 child2"},
		{"all move up", "a, b, c; b, c", "child1 child2"},
		{"all move down behind a new one", "a, b; new, a, b", "child2 child0 child1"},
		{"two priorities change places", "a, b; b, a", "child1 child0"},
		{"a locality joins, first in its list", "a, b c; new a, b c", "child0 child1"},
		{"a locality leaves", "a b, c; b, c", "child0 child1"},
		{"a locality is promoted: those that stay keep their connections", "a, b c; b a, c", "child0 child1"},
		{"most localities decide", "a, b c; a b c", "child1"},
		{"one locality in two priorities", "a, a; a, a", "child0 child1"},
		{"a name is used once: the higher priority takes it", "a b; a, b", "child0 child1"},
		{"removed names are not reused", "a, b; a; a, b", "child0 child2"},
		{"all are replaced", "a; b; a", "child2"},
	} {
		t.Run(test.title, func(t *testing.T) {
			var names childNames
			var children []child
			for update := range strings.SplitSeq(test.updates, ";") {
				children = names.update(groupsOf(update, ""))
			}
			if got := namesOf(children); got != test.want {
				t.Errorf("after %s: %s, want %s", test.updates, got, test.want)
			}
		})
	}
}

func TestClustersDoNotShareNames(t *testing.T) {
	var names childNames
	for _, cluster := range []string{"first", "second"} {
		names.assign(groupsOf("a", ""), cluster)
	}
	if got := namesOf(names.assign(groupsOf("a", ""), "first")); got != "child2" {
		t.Errorf("name = %s, want child2", got)
	}
}

// All names in an update must differ. The name of a removed child must never be reused. An update
// without changes must keep every name. A new locality or priority must not change the names of
// other priorities.
func TestNamesAreStable(t *testing.T) {
	localities := rapid.Custom(func(t *rapid.T) string {
		locality := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"})
		var priorities []string
		for _, names := range rapid.SliceOfN(rapid.SliceOfNDistinct(locality, 1, 4, rapid.ID), 0, 5).Draw(t, "priorities") {
			priorities = append(priorities, strings.Join(names, " "))
		}
		return strings.Join(priorities, ",")
	})
	rapid.Check(t, func(t *rapid.T) {
		var names childNames
		var before []string
		removed := map[string]bool{}
		for _, update := range rapid.SliceOfN(localities, 1, 8).Draw(t, "updates") {
			addresses := make([]string, 6) // an answer has each address once
			for _, address := range []string{"1", "2", "3", "4", "5", "6"} {
				priority, state := rapid.IntRange(0, 5).Draw(t, "priority"), rapid.SampledFrom([]string{"", "-"}).Draw(t, "state")
				addresses[priority] += " " + address + state
			}
			groups := groupsOf(update, strings.Join(addresses, ","))
			current := strings.Fields(namesOf(names.update(groups)))
			for i, name := range current {
				if removed[name] || slices.Contains(current[:i], name) {
					t.Fatalf("%s was given again: %s", name, current)
				}
			}
			for _, name := range before {
				removed[name] = removed[name] || !slices.Contains(current, name)
			}
			before = current

			grown := slices.Clone(groups)
			index := rapid.IntRange(0, len(grown)).Draw(t, "where")
			added := discovery.Locality{Region: "newcomer"}
			if index < len(grown) {
				grown[index].Localities = append([]discovery.Locality{added}, grown[index].Localities...)
			} else {
				grown = append(grown, groupsOf("newcomer", "")...)
			}
			for _, next := range [][]group{groups, grown} {
				again := names
				if got := strings.Fields(namesOf(again.update(next)))[:len(current)]; !slices.Equal(got, current) {
					t.Fatalf("%v became %v with %v", current, got, next)
				}
			}
		}
	})
}
