package topology_test

import (
	"slices"
	"testing"

	"github.com/understudy-lb/understudy/internal/channel/topology"
	"github.com/understudy-lb/understudy/internal/net/location"
)

func TestNearGroupNames(t *testing.T) {
	near := topology.Near{Prefer: "zone", Place: location.Location{Region: "us", Zone: "a"}}
	for _, test := range []struct {
		near topology.Near
		want []string
	}{
		{topology.Near{}, []string{"us/a, us/b"}},
		{near, []string{"us/a (same zone)", "us/b (same region)"}},
	} {
		tree, err := (&topology.Translator{Near: test.near}).Translate(answerOf(t, "0 us/a: x", "0 us/b: y"))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, p := range tree.Priorities {
			names = append(names, p.Name)
		}
		if !slices.Equal(names, test.want) {
			t.Errorf("the priorities are %q, want %q", names, test.want)
		}
	}
}

// Endpoints of the same locality with the same weight must share their attributes, also with the
// next tree.
func TestTreesShareAttributes(t *testing.T) {
	var translator topology.Translator
	var trees [2]topology.Tree
	for i := range trees {
		trees[i], _ = translator.Translate(answerOf(t, "0 us: a*2 b*2 c"))
	}
	first, second := trees[0].Endpoints, trees[1].Endpoints
	if len(first) != 3 || len(second) != 3 {
		t.Fatalf("%d and %d endpoints, want 3", len(first), len(second))
	}
	if first[0].Attributes != first[1].Attributes || first[0].Attributes == first[2].Attributes {
		t.Error("endpoints with the same weight do not share their attributes, or others do")
	}
	for i := range first {
		if first[i].Attributes != second[i].Attributes {
			t.Errorf("endpoint %d has new attributes in the second tree", i)
		}
	}
}
