package topology

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// memberLists parses a list such as "a b, c": localities a and b in priority 0, and c in priority
// 1.
func memberLists(text string) [][]member {
	var priorities [][]member
	for priority := range strings.SplitSeq(text, ",") {
		var members []member
		for locality := range strings.FieldsSeq(priority) {
			members = append(members, member{"cluster", locality})
		}
		priorities = append(priorities, members)
	}
	return priorities
}

func namesOf(children []child) string {
	var names []string
	for _, c := range children {
		names = append(names, c.name)
	}
	return strings.Join(names, " ")
}

// addressLists parses a list such as "1 2, 3-": addresses 1 and 2 in priority 0, and the draining
// address 3 in priority 1.
func addressLists(text string) func(priority int) map[string]bool {
	return func(priority int) map[string]bool {
		all := make(map[string]bool)
		for _, field := range strings.Fields(strings.Split(text, ",")[priority]) {
			address, isDraining := strings.CutSuffix(field, "-")
			all[address] = !isDraining
		}
		return all
	}
}

func noAddresses(int) map[string]bool { return nil }

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
			_, names = names.assign(memberLists(test.before), false, addressLists(test.addressesBefore))
			children, _ := names.assign(memberLists(test.after), false, addressLists(test.addressesAfter))
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
				children, names = names.assign(memberLists(update), false, noAddresses)
			}
			if got := namesOf(children); got != test.want {
				t.Errorf("after %s: %s, want %s", test.updates, got, test.want)
			}
		})
	}
}

func TestClustersDoNotShareNames(t *testing.T) {
	var names childNames
	_, names = names.assign([][]member{{{"first", "a"}}, {{"second", "a"}}}, false, noAddresses)
	children, _ := names.assign([][]member{{{"second", "a"}}}, false, noAddresses)
	if got := namesOf(children); got != "child1" {
		t.Errorf("name = %s, want child1", got)
	}
}

// All names in an update must differ. The name of a removed child must never be reused. An update
// without changes must keep every name. A new locality or priority must not change the names of
// other priorities.
func TestNamesAreStable(t *testing.T) {
	update := rapid.Custom(func(t *rapid.T) [][]member {
		locality := rapid.Map(rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}), func(s string) member { return member{"cluster", s} })
		return rapid.SliceOfN(rapid.SliceOfNDistinct(locality, 1, 4, rapid.ID), 0, 5).Draw(t, "priorities")
	})
	rapid.Check(t, func(t *rapid.T) {
		var names childNames
		var before []string
		removed := map[string]bool{}
		for _, priorities := range rapid.SliceOfN(update, 1, 8).Draw(t, "updates") {
			addresses := addressLists(strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"", "1", "1-", "2", "2- 3", "4"}), 6, 6).Draw(t, "addresses"), ","))
			var children []child
			children, names = names.assign(priorities, false, addresses)
			current := strings.Fields(namesOf(children))
			for i, name := range current {
				if removed[name] || slices.Contains(current[:i], name) {
					t.Fatalf("%s was given again: %s", name, current)
				}
			}
			for _, name := range before {
				removed[name] = removed[name] || !slices.Contains(current, name)
			}
			before = current

			grown := slices.Clone(priorities)
			index := rapid.IntRange(0, len(grown)).Draw(t, "where")
			added := member{"cluster", "newcomer"}
			if index < len(grown) {
				grown[index] = append([]member{added}, grown[index]...)
			} else {
				grown = append(grown, []member{added})
			}
			for _, next := range [][][]member{priorities, grown} {
				after, _ := names.assign(next, false, addresses)
				if got := strings.Fields(namesOf(after))[:len(current)]; !slices.Equal(got, current) {
					t.Fatalf("%v became %v with %v", current, got, next)
				}
			}
		}
	})
}
