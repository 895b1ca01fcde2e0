package topology

import (
	"fmt"
	"slices"
	"testing"
)

// Only the endpoints that were not in the last answer are checked again.
func TestUncheckedEndpoints(t *testing.T) {
	of := func(priorities, localities, endpoints int) *Answer {
		a := &Answer{Priorities: make([]Priority, priorities)}
		for i := range a.Priorities {
			for j := range localities {
				l := Locality{Region: fmt.Sprint(j)}
				for k := range endpoints {
					l.Endpoints = append(l.Endpoints, Endpoint{Addresses: []string{fmt.Sprintf("10.%d.%d.%d:1", i, j, k)}})
				}
				a.Priorities[i].Localities = append(a.Priorities[i].Localities, l)
			}
		}
		return a
	}
	for _, test := range []struct {
		before, now *Answer
		want        []endpointIndex
	}{
		{of(2, 2, 100), of(2, 2, 100), nil},
		{of(1, 1, 100), of(1, 1, 101), []endpointIndex{{0, 0, 100}}},
		{of(1, 2, 2), of(2, 2, 2), []endpointIndex{{1, 0, 0}, {1, 0, 1}, {1, 1, 0}, {1, 1, 1}}},
		{of(1, 1, 2), of(1, 2, 2), []endpointIndex{{0, 1, 0}, {0, 1, 1}}},
		{of(2, 2, 2), of(1, 1, 2), nil},
	} {
		last, err := Check(test.before)
		if err != nil {
			t.Fatal(err)
		}
		if got := uncheckedIn(test.now, last); got.all || !slices.Equal(got.list, test.want) {
			t.Errorf("%d endpoints after %d: unchecked are %v, want %v", Size(test.now), Size(test.before), got, test.want)
		}
	}
	last, _ := Check(of(1, 1, 1))
	if got := uncheckedIn(of(1, 1, 17), last); got.all || len(got.list) != 16 {
		t.Errorf("16 new endpoints: unchecked are %v", got)
	}
	if got := uncheckedIn(of(1, 1, 18), last); !got.all {
		t.Errorf("17 new endpoints: unchecked are %v, want all", got)
	}
}

// An answer is known to have distinct addresses if each unchecked endpoint differs from all others.
func TestDistinctAddresses(t *testing.T) {
	for _, test := range []struct {
		addresses []string
		list      []endpointIndex
		want      bool
	}{
		{[]string{"a:1", "b:1"}, []endpointIndex{{0, 0, 1}}, true},
		{[]string{"a:1", "a:1"}, []endpointIndex{{0, 0, 1}}, false},
		{[]string{"a:1", "b:1", "a:1"}, []endpointIndex{{0, 0, 1}, {0, 0, 2}}, false},
		{[]string{"a:1", ""}, []endpointIndex{{0, 0, 1}}, true},
		{[]string{"a:1", ""}, []endpointIndex{{0, 0, 0}}, true},
	} {
		var l Locality
		for _, address := range test.addresses {
			var e Endpoint
			if address != "" {
				e.Addresses = []string{address}
			}
			l.Endpoints = append(l.Endpoints, e)
		}
		n := uncheckedEndpoints{list: test.list}
		if got := n.areDistinct(&Answer{Priorities: []Priority{{Localities: []Locality{l}}}}); got != test.want {
			t.Errorf("%q with the unchecked %v: distinct = %v, want %v", test.addresses, test.list, got, test.want)
		}
	}
}
