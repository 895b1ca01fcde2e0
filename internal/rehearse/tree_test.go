package rehearse

import (
	"context"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/channel/topology"
	"github.com/understudy-lb/understudy/internal/net/location"
)

func treeOf(t *testing.T, near topology.Near, drops []discovery.Drop, zones ...string) topology.Update {
	t.Helper()
	a := &discovery.Answer{Drops: drops, Priorities: []discovery.Priority{{}}}
	for i, zone := range zones {
		e := discovery.Endpoint{Addresses: []string{"10.0.0." + string(rune('1'+i)) + ":1"}, Weight: uint32(i + 1)}
		a.Priorities[0].Localities = append(a.Priorities[0].Localities, discovery.Locality{Zone: zone, Weight: 3, Endpoints: []discovery.Endpoint{e}})
	}
	tree, err := (&topology.Translator{Near: near}).Translate(a)
	if err != nil {
		t.Fatal(err)
	}
	policies, err := topology.NewPolicies(topology.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	return policies.Combine(tree)
}

// The near groups of a priority are priorities of the world, as in a channel.
func TestTreeWithNearGroups(t *testing.T) {
	w := OfUpdate(treeOf(t, topology.Near{Prefer: "zone", Place: location.Location{Zone: "b"}}, nil, "a", "b", "c"))
	want := [][]Server{
		{{Weight: 2, Locality: "/b", LocalityWeight: 3}},
		{{Weight: 1, Locality: "/a", LocalityWeight: 3}, {Weight: 3, Locality: "/c", LocalityWeight: 3}},
	}
	if !reflect.DeepEqual(w.Priorities, want) || !reflect.DeepEqual(w.Policy.SourcePriorities, []int{0, 0}) {
		t.Errorf("the world has %+v of the source's priorities %v, want %+v of 0 and 0", w.Priorities, w.Policy.SourcePriorities, want)
	}
	if w.Source(1) != 0 || (&World{}).Source(1) != 1 {
		t.Errorf("priority 1 is of %d; without near groups, of %d", w.Source(1), (&World{}).Source(1))
	}
	uses := Rest(w)
	if uses[0].Priority != 0 || uses[1].Priority != 1 || uses[2].Priority != -1 {
		t.Errorf("calls go to %d, %d and %d, want 0, 1 and nowhere", uses[0].Priority, uses[1].Priority, uses[2].Priority)
	}
}

// Dropped calls are lost, reach no server, and do not change where the others go.
func TestDrops(t *testing.T) {
	w := fleet(150)
	w.Drop = OfUpdate(treeOf(t, topology.Near{}, []discovery.Drop{{PerMillion: 500_000}, {PerMillion: 500_000}}, "a")).Drop
	o := Play(context.Background(), w, 1)
	if share := float64(o.Lost) / float64(o.Calls); w.Drop[0] != 0.75 || math.Abs(share-0.75) > 0.02 || o.Lost+o.Attempts != o.Calls {
		t.Errorf("of %d calls, %d are lost and %d attempts are made; want 75 %% lost without an attempt", o.Calls, o.Lost, o.Attempts)
	}
	ended := 0
	w.Length = 5 * time.Second
	Run(w, 1, Observer{Ended: func(c Call) {
		if c.End == Dropped {
			ended++
		}
	}})
	if ended == 0 {
		t.Error("no call is dropped")
	}
}

// A priority without servers fails at once, and standbys are connected.
func TestRest(t *testing.T) {
	w := fleet(1)
	w.Priorities[0] = nil
	w.Priorities[2][1].Weight = 3
	uses := Rest(w)
	if uses[0].Priority != 1 || !reflect.DeepEqual(uses[0].Standby, []bool{false, false, true}) || !reflect.DeepEqual(uses[0].Shares, []float64{0.5, 0.5}) {
		t.Errorf("at first: %+v, want priority 1 with equal shares, and 2 as a standby", uses[0])
	}
	if uses[1].Priority != 1 || uses[2].Priority != 2 || !reflect.DeepEqual(uses[2].Shares, []float64{0.25, 0.75}) || uses[3].Priority != -1 {
		t.Errorf("then: %+v", uses[1:])
	}
}
