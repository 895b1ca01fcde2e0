package sim

import (
	"math"
	"slices"
	"time"
)

// leastPart is the initial share of its weight that an endpoint gets in slow start, as in Envoy's
// slow_start.
const leastPart = 0.1

// checkGrowth disconnects an endpoint of the priority in use, and checks that its share of the
// calls grows again as in slow start.
func (w *World) checkGrowth(q quiet) {
	locality, back := w.replaceable(q)
	if back.Address == "" {
		return
	}
	begin := time.Now()
	w.Log.Event("%s has its connections reset for the slow start check", back.Address)
	w.reset(back.Address)
	w.touch()
	for _, ready := range []time.Duration{time.Second, w.settings.slowStart / 2} {
		pass(time.Until(begin.Add(ready)))
		if _, open := w.network.Dials(back.Address); open == 0 {
			return
		}
		counts, ok := w.sample(q)
		if !ok {
			return
		}
		w.mu.Lock()
		all, own := locality.load(w.connects), float64(back.Weight)
		w.mu.Unlock()
		part := max(leastPart, ready.Seconds()/w.settings.slowStart.Seconds())
		want := q.share(back.Address) * all * part / (all - own + own*part)
		if got := float64(counts[back.Address]) / float64(q.calls); math.Abs(got-want) > 0.02 {
			w.Log.Break(ruleGrowth, "%s, which has been back for %v, got %.1f %% of the calls, want %.1f %%", back.Address, ready, 100*got, 100*want)
		}
	}
	w.mark(markSlowStart)
}

// replaceable returns an endpoint of the priority in use, and its locality, if other endpoints can
// take its calls and nothing else changes. It returns none without slowStart, with pickFirst, or if
// calls take time.
func (w *World) replaceable(q quiet) (Locality, Endpoint) {
	w.mu.Lock()
	defer w.mu.Unlock()
	slow := func(address string) bool {
		c := w.conditions[address]
		return c.connects() && (!c.works() || c.link != Link{})
	}
	if w.settings.slowStart == 0 || w.settings.pickFirst || w.settings.minReady > 0 || q.shares == nil || slices.ContainsFunc(q.endpoints, slow) {
		return Locality{}, Endpoint{}
	}
	for _, l := range w.known[q.right[0]] {
		for _, e := range l.Endpoints {
			if rest := l.load(w.connects) - float64(e.Weight); !e.Draining && w.connects(e.Address) && rest > 0 {
				return l, e
			}
		}
	}
	return Locality{}, Endpoint{}
}
