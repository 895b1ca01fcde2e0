package topology

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/understudy-lb/understudy/discovery"
)

func TestPreviousAnswerDoesNotChangeCheck(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	known, duplicates, invalid := 0, 0, 0
	a := &discovery.Answer{Priorities: []discovery.Priority{{Localities: []discovery.Locality{{Region: "a"}, {Region: "b"}}}, {Localities: []discovery.Locality{{Region: "a"}}}}}
	last, err := Check(a, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 5000 {
		a = randomEdit(random, a)
		want, wantErr := Check(a, nil)
		got, err := Check(a, last)
		if fmt.Sprint(err) != fmt.Sprint(wantErr) || err == nil && !reflect.DeepEqual(got, want) {
			t.Fatalf("after another answer, Check = %+v, %v\nwant %+v, %v\nfor %v", got, err, want, wantErr, a)
		}
		if err != nil {
			invalid++
			if a = last.Given; invalid%10 > 0 {
				continue
			}
			a = &discovery.Answer{Priorities: slices.Clone(a.Priorities)}
			for i := range a.Priorities {
				a.Priorities[i].Localities = []discovery.Locality{{Region: "a"}, {Region: "b"}}
			}
			continue
		}
		if isNew, _ := last.compare(a); len(isNew) == 0 {
			known++
		}
		if !Equal(got.Answer, got.Given) {
			duplicates++
		}
		last = got
	}
	if known < 200 || duplicates < 200 || invalid < 200 {
		t.Errorf("%d answers without new endpoints, %d with duplicates and %d invalid ones, want 200 of each", known, duplicates, invalid)
	}
}

func randomEdit(random *rand.Rand, a *discovery.Answer) *discovery.Answer {
	changed := *a
	changed.Priorities = slices.Clone(a.Priorities)
	for range 1 + random.IntN(3) {
		i := random.IntN(len(changed.Priorities))
		changed.Priorities[i].Localities = slices.Clone(changed.Priorities[i].Localities)
		l := &changed.Priorities[i].Localities[random.IntN(len(changed.Priorities[i].Localities))]
		l.Endpoints = slices.Clone(l.Endpoints)
		k := random.IntN(len(l.Endpoints) + 1)
		addresses := []string{fmt.Sprintf("10.0.0.%d:1", random.IntN(250))}
		switch random.IntN(20) {
		case 0:
			addresses = nil
		case 1:
			addresses = []string{"no address"}
		case 2:
			addresses = append(addresses, "10.1.0.1:1")
		}
		e := discovery.Endpoint{Addresses: addresses, Health: discovery.Health(random.IntN(4)), Weight: random.Uint32N(3)}
		switch {
		case k == len(l.Endpoints) || random.IntN(3) == 0 && len(l.Endpoints) < 40:
			l.Endpoints = slices.Insert(l.Endpoints, k, e)
		case random.IntN(2) == 0:
			l.Endpoints = slices.Delete(l.Endpoints, k, k+1)
		case random.IntN(2) == 0:
			e.Addresses = l.Endpoints[k].Addresses
			fallthrough
		default:
			l.Endpoints[k] = e
		}
	}
	return &changed
}
