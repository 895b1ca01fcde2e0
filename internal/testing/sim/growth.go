package sim

import (
	"math"
	"slices"
	"time"
)

// minSlowStartShare is the fraction of its weight that an endpoint has at the beginning of slow
// start, which is Envoy's default.
const minSlowStartShare = 0.1

// checkGrowth resets the connections of an endpoint of the priority in use, and checks that its
// share of the calls then grows as slowStart requires.
func (w *World) checkGrowth(q expectation) {
	locality, endpoint := w.drawRemovable(q)
	if endpoint.Address == "" {
		return
	}
	begin := time.Now()
	w.Log.Event("%s has its connections reset for the slow start check", endpoint.Address)
	w.reset(endpoint.Address)
	w.recordEvent()
	for _, ready := range []time.Duration{time.Second, w.settings.slowStart / 2} {
		sleep(time.Until(begin.Add(ready)))
		if _, open := w.network.Dials(endpoint.Address); open == 0 {
			return
		}
		counts, ok := w.sample(q)
		if !ok {
			return
		}
		w.mu.Lock()
		total, full := locality.upWeight(w.reachable), float64(endpoint.Weight)
		w.mu.Unlock()
		fraction := max(minSlowStartShare, ready.Seconds()/w.settings.slowStart.Seconds())
		want := q.share(endpoint.Address) * total * fraction / (total - full + full*fraction)
		if got := float64(counts[endpoint.Address]) / float64(q.calls); math.Abs(got-want) > 0.02 {
			w.Log.Break(ruleGrowth, "%s, which has been back for %v, got %.1f %% of the calls, want %.1f %%", endpoint.Address, ready, 100*got, 100*want)
		}
	}
	w.mark(markSlowStart)
}

func (w *World) drawRemovable(q expectation) (Locality, Endpoint) {
	// Other endpoints of the locality must be able to take the calls. drawRemovable returns the
	// zero value if there is no such endpoint, or if something other than slowStart may affect the
	// shares.
	w.mu.Lock()
	defer w.mu.Unlock()
	slowOrFailing := func(address string) bool {
		c := w.conditions[address]
		return c.reachable() && (!c.works() || c.link != Link{})
	}
	if w.settings.slowStart == 0 || w.settings.pickFirst || q.shares == nil || slices.ContainsFunc(q.endpoints, slowOrFailing) {
		return Locality{}, Endpoint{}
	}
	for _, l := range w.knownTruth[q.priorities[0]] {
		for _, e := range l.Endpoints {
			if remaining := l.upWeight(w.reachable) - float64(e.Weight); !e.Draining && w.reachable(e.Address) && remaining > 0 {
				return l, e
			}
		}
	}
	return Locality{}, Endpoint{}
}
