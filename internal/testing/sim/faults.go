package sim

import (
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
)

// pairFault is one of the two faults of a pair. It affects the endpoints of one priority. If begin
// and repeat are nil, it's a property of the client's calls instead.
type pairFault struct {
	name     string
	begin    func(w *World, tier []string)
	repeat   func(w *World, tier []string) // called at intervals while the fault lasts; may be nil
	interval [2]time.Duration              // repeat is called at intervals between these two
}

var faultNames = strings.Fields("kill refuse hang errors some below ends resets update seldom streams source")

func pairFaults() []pairFault {
	return []pairFault{
		{name: "kill", begin: forEachEndpoint((*World).down)},
		{name: "refuse", begin: (*World).refuseAll},
		{name: "hang", begin: (*World).hangAll},
		{name: "errors", begin: (*World).failAll},
		{name: "some", begin: (*World).failSome},
		{name: "below", begin: (*World).loseSome},
		{name: "ends", repeat: (*World).endConnections, interval: [2]time.Duration{5 * time.Second, time.Minute}},
		{name: "resets", repeat: (*World).resetInUse, interval: [2]time.Duration{20 * time.Second, 3 * time.Minute}},
		{name: "update", repeat: (*World).updateOnce, interval: [2]time.Duration{time.Minute, 10 * time.Minute}},
		{name: "seldom"},
		{name: "streams"},
		{name: "source", begin: (*World).loseSource, repeat: (*World).updateOnce, interval: [2]time.Duration{time.Minute, 10 * time.Minute}},
	}
}

func pairs() (all []string) {
	for i, a := range faultNames {
		for _, b := range faultNames[i+1:] {
			all = append(all, a+"+"+b)
		}
	}
	return all
}

func faultsOf(pair string) []pairFault {
	var all []pairFault
	known := pairFaults()
	for name := range strings.SplitSeq(pair, "+") {
		i := slices.IndexFunc(known, func(f pairFault) bool { return f.name == name })
		if i < 0 {
			panic("unknown fault " + name)
		}
		all = append(all, known[i])
	}
	return all
}

func (f pairFault) affectsEndpoints() bool { return f.begin != nil && f.name != "source" }

func forEachEndpoint(f func(*World, string)) func(*World, []string) {
	return func(w *World, tier []string) {
		for _, address := range tier {
			f(w, address)
		}
	}
}

// refuseAll also resets existing connections half of the time.
func (w *World) refuseAll(tier []string) {
	reset := w.rand.IntN(2) == 0
	for _, address := range tier {
		w.change(address, func(c *condition) { c.link.Refuse = true })
		if reset {
			w.network.Reset(address)
		}
	}
}

func (w *World) hangAll(tier []string) {
	// If the client uses streams without a deadline, it would never notice a hanging call, so we
	// leave that out.
	choices := []func(*World, string){(*World).blackhole, (*World).oneWay, (*World).pause, (*World).hang, (*World).hang}
	if w.pair.streams && !w.pair.streamsHaveDeadline {
		choices = choices[:3]
	}
	forEachEndpoint(choices[w.rand.IntN(len(choices))])(w, tier)
}

func (w *World) failAll(tier []string) {
	code := []codes.Code{codes.Unavailable, codes.Internal, codes.ResourceExhausted}[w.rand.IntN(3)]
	for _, address := range tier {
		w.change(address, func(c *condition) { c.code = code })
		w.backends[address].SetCode(code)
	}
}

func (w *World) failSome(tier []string) { w.failAll(w.randomSubset(tier)) }

func (w *World) loseSome(tier []string) {
	f := []func(*World, []string){forEachEndpoint((*World).down), (*World).refuseAll, (*World).hangAll, (*World).failAll}[w.rand.IntN(4)]
	w.rand.Shuffle(len(tier), func(i, j int) { tier[i], tier[j] = tier[j], tier[i] })
	f(w, tier[:max(1, len(tier)-1)])
}

// randomSubset returns at least one of a priority's endpoints and, if there are several, not all of
// them.
func (w *World) randomSubset(tier []string) []string {
	w.rand.Shuffle(len(tier), func(i, j int) { tier[i], tier[j] = tier[j], tier[i] })
	return tier[:1+w.rand.IntN(max(1, len(tier)-1))]
}

func (w *World) endConnections(tier []string) {
	if w.rand.IntN(2) == 0 {
		tier = tier[w.rand.IntN(len(tier)):][:1]
	}
	end := func() {
		for _, address := range tier {
			w.Log.Event("connections to %s end", address)
			w.backends[address].GoAway()
		}
	}
	if w.rand.IntN(4) > 0 {
		end()
		return
	}
	w.duringBurst(end)
}

func (w *World) resetInUse(tier []string) {
	if w.rand.IntN(3) == 0 {
		tier = w.randomSubset(tier)
	}
	w.duringBurst(func() {
		w.mu.Lock()
		for _, address := range tier {
			w.conditions[address].resetAt = time.Now()
		}
		w.mu.Unlock()
		for _, address := range tier {
			w.Log.Event("connections to %s are reset", address)
			w.network.Reset(address)
		}
	})
}

func (w *World) updateOnce([]string) {
	if w.rand.IntN(3) == 0 {
		w.publishOlder()
		return
	}
	w.publish(w.changedTruth())
}

func (w *World) loseSource([]string) { w.failSource() }

// drawTier returns the endpoints of a random priority, or nil if there's no suitable one. If
// several is set, the priority must have several endpoints.
func (w *World) drawTier(r *rand.Rand, several bool) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var tiers [][]string
	for _, tier := range w.knownTruth {
		if serving := tier.Serving(); len(serving) > 1 || len(serving) == 1 && !several {
			tiers = append(tiers, serving)
		}
	}
	if len(tiers) == 0 {
		return nil
	}
	return slices.DeleteFunc(tiers[r.IntN(3)%len(tiers)*r.IntN(2)], func(address string) bool { return address == deadAddress })
}
