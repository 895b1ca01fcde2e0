package weightedroundrobin

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/experimental/balancer/weight"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

type fleet struct {
	*harness
	leaf       *lbtest.StubBuilder
	random     *rand.Rand
	config     string
	list       []member
	down       map[string]bool
	stubs      map[string]*lbtest.Stub
	knownStubs int
	created    int
}

type member struct {
	name   string
	weight uint32
}

func newFleet(h *harness, leaf *lbtest.StubBuilder, random *rand.Rand, config string, n int) *fleet {
	f := &fleet{harness: h, leaf: leaf, random: random, config: config, down: map[string]bool{}, stubs: map[string]*lbtest.Stub{}}
	for range n {
		f.addEndpoint()
	}
	f.sendUpdate()
	return f
}

func (f *fleet) addEndpoint() {
	f.created++
	f.list = append(f.list, member{fmt.Sprint("e", f.created), f.randomWeight()})
}

func (f *fleet) randomWeight() uint32 { return 1 + f.random.Uint32N(100) }

func (f *fleet) sendUpdate() {
	state := resolver.State{}
	for _, m := range f.list {
		e := resolver.Endpoint{Addresses: []resolver.Address{{Addr: m.name}}}
		state.Endpoints = append(state.Endpoints, weight.Set(e, weight.EndpointInfo{Weight: m.weight}))
	}
	f.mustUpdate(f.config, state)
	built := f.leaf.Built()
	for _, stub := range built[f.knownStubs:] {
		f.stubs[stub.Addresses()[0]] = stub
		reportStub(stub, connectivity.Ready)
	}
	f.knownStubs = len(built)
	synctest.Wait()
}

func (f *fleet) toggleReady() {
	name := f.list[f.random.IntN(len(f.list))].name
	if f.down[name] {
		delete(f.down, name)
		reportStub(f.stubs[name], connectivity.Ready)
	} else if len(f.down) < len(f.list)-1 {
		f.down[name] = true
		reportStub(f.stubs[name], connectivity.Connecting)
	}
	synctest.Wait()
}

var patterns = map[string]func(*fleet){
	"the same weights": func(f *fleet) { f.sendUpdate() },
	"changed weights": func(f *fleet) {
		f.list[f.random.IntN(len(f.list))].weight = f.randomWeight()
		f.sendUpdate()
	},
	"READY flapping": (*fleet).toggleReady,
	"joiners and leavers": func(f *fleet) {
		i := f.random.IntN(len(f.list))
		delete(f.down, f.list[i].name)
		f.list = append(f.list[:i:i], f.list[i+1:]...)
		f.addEndpoint()
		f.sendUpdate()
	},
	"rotated": func(f *fleet) {
		f.list = append(f.list[1:len(f.list):len(f.list)], f.list[0])
		f.sendUpdate()
	},
	"reordered": func(f *fleet) {
		f.random.Shuffle(len(f.list), func(i, j int) { f.list[i], f.list[j] = f.list[j], f.list[i] })
		f.sendUpdate()
	},
}

func init() {
	patternNames := []string{"the same weights", "changed weights", "READY flapping", "joiners and leavers", "rotated", "reordered"}
	patterns["everything"] = func(f *fleet) { patterns[patternNames[f.random.IntN(len(patternNames))]](f) }
}

// An update replaces the picker after every few picks. Each endpoint's share of the picks must
// nevertheless stay within half a percentage point of its share of the weight.
func TestFrequentUpdatesKeepShares(t *testing.T) {
	for name, change := range patterns {
		t.Run(name, func(t *testing.T) {
			leaf, builder := stubLeaf("wrr_shares")
			runWith(t, builder, func(h *harness) {
				f := newFleet(h, leaf, rand.New(rand.NewPCG(1, 2)), `{"startPoint": "random"}`, 10)
				got, want, total := map[string]float64{}, map[string]float64{}, 0.0
				for range 10_000 {
					change(f)
					state := h.cc.State()
					for range 1 + f.random.IntN(5) {
						got[lbtest.Pick(state)]++
						total++
						f.addExpected(want)
					}
				}
				for name := range want {
					if difference := math.Abs(got[name]-want[name]) / total * 100; difference > 0.5 {
						t.Errorf("%s has %.0f of %.0f picks, want %.0f: %.2f points off", name, got[name], total, want[name], difference)
					}
				}
			})
		})
	}
}

func (f *fleet) addExpected(want map[string]float64) {
	sum := 0.0
	for _, m := range f.list {
		if !f.down[m.name] {
			sum += float64(m.weight)
		}
	}
	for _, m := range f.list {
		if !f.down[m.name] {
			want[m.name] += float64(m.weight) / sum
		}
	}
}

// The picker of a single READY child has no scheduler. The child must nevertheless keep its
// position in the sequence.
func TestPositionOfOnlyReadyEndpoint(t *testing.T) {
	for picks, want := range map[string]string{"": "abb", "a": "bab", "aaa": "bab"} {
		run(t, func(h *harness) {
			h.update("", "a:1 b:2")
			h.ready("a", "b")
			h.wantPicks("b")
			h.report(connectivity.Idle, "b")
			h.wantPicks(picks)
			h.ready("b")
			h.wantPicks(want)
		})
	}
}

func TestFirstPicksOfClientsFollowWeights(t *testing.T) {
	const clients = 2000
	heavy := 0
	for range clients {
		run(t, func(h *harness) {
			h.update(`{"startPoint": "random"}`, "a:1 b:9")
			h.ready("a", "b")
			if lbtest.Pick(h.cc.State()) == "b" {
				heavy++
			}
		})
	}
	// 1,800 is expected, and the bounds are 5 standard deviations from it. If each endpoint had an
	// independent random start, about 1,889 would be expected.
	if heavy < 1733 || heavy > 1867 {
		t.Errorf("%d of %d first picks go to 9 of 10 of the weight, want about %d", heavy, clients, clients*9/10)
	}
}
