package sim

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// concerns says whether what befalls an address can change which priority is in use:
// what befalls a lower one cannot. The lock is held.
func (w *World) concerns(address string) bool {
	return w.lowest < 0 || slices.Contains(w.vital, address)
}

// publish gives the source another truth.
func (w *World) publish(truth Truth) {
	w.Log.Event("the source has %v", truth)
	w.mu.Lock()
	w.history = append(w.history, w.truth)
	w.truth, w.changedAt = truth, time.Now()
	for _, address := range truth.serving() {
		delete(w.gone, address)
	}
	w.mu.Unlock()
	w.source.Publish(truth)
}

// moves says whether an update may change which priority is in use: not one that leaves
// the priority in use and those above as they are, but for others without endpoints
// that are put above or taken away. The parts of a failover: target, and the members of
// an aggregate, cannot move. The lock is held.
func (w *World) moves(truth Truth) bool {
	if w.lowest < 0 || w.lowest >= len(w.known) || !slices.Equal(w.known.detections(), truth.detections()) {
		return true
	}
	if part[*kube](w) != nil && slices.ContainsFunc(truth, Tier.partly) {
		return true
	}
	fixed := w.source.Fixed()
	above := func(t Truth, n int) (shape []string) {
		for _, tier := range t {
			if fixed || len(tier.Serving()) > 0 {
				if shape = append(shape, fmt.Sprint(tier.places())); len(shape) == n {
					break
				}
			}
		}
		return shape
	}
	n := len(above(w.known[:w.lowest+1], len(w.known)))
	return !slices.Equal(above(w.known, n), above(truth, n))
}

// partly says whether a tier that takes calls has a locality that does not. While Services are written one by
// one, endpoints may stand for a moment in the priority of others that end, and go by its name.
func (t Tier) partly() bool {
	idle := func(l Locality) bool { return len(Tier{l}.Serving()) == 0 }
	return len(t.Serving()) > 0 && slices.ContainsFunc(t, idle)
}

// places returns where calls may go in a tier, by locality: another one is another child.
func (t Tier) places() []string {
	var places []string
	for _, l := range t {
		endpoints := Tier{l}.Serving()
		if slices.Sort(endpoints); len(endpoints) > 0 {
			places = append(places, l.Zone+fmt.Sprint(endpoints))
		}
	}
	slices.Sort(places)
	return places
}

func (t Truth) serving() []string {
	var all []string
	for _, tier := range t {
		all = append(all, tier.Serving()...)
	}
	return all
}

// told is told of what a channel is told, and returns whether that is what it was told last.
func (w *World) told(c *channel, t tree, truth Truth, endpoints int) (again bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c != w.channel { // it is about to be closed
		c.settle(false)
		return false
	}
	c.mu.Lock()
	c.toldBefore, c.told, c.truth = c.told, t, truth
	c.detects = c.detects || truth.detects()
	c.settled = c.settled && !w.moves(truth)
	c.mu.Unlock()
	if want := fmt.Sprintf("%d in %d", endpoints, len(t.priorities)); w.announced != want {
		w.Log.Break(ruleNames, "the log says %q of an update of %q", w.announced, want)
	}
	now, in := time.Now(), truth.serving()
	for _, address := range w.known.serving() {
		if !slices.Contains(in, address) {
			w.gone[address] = now
		}
	}
	for _, address := range in {
		delete(w.gone, address)
		w.ever[address] = true
	}
	// A source whose answer the channel did not take, because nothing in it can be used, asks
	// again, and says the same.
	again = w.known != nil && truth.String() == w.known.String()
	if !again {
		w.knownAt, w.repeated = now, 0
	}
	if !slices.Equal(w.known.detections(), truth.detections()) {
		w.detected = now
	}
	w.before, w.known, w.knownOf = w.known, truth, t.numbers()
	if w.judge != nil {
		w.judge.told(truth)
	}
	if w.faulty == "" && time.Since(w.wellSince) > w.source.Recovery() { // else it may be one part of several
		w.lastTold = now
	}
	w.Log.Event("the channel is told %v", truth)
	return again
}

// oftenEnough is how often at most a source that is well says the same after an event: each
// endpoint that comes or goes may have it asked again.
const oftenEnough = 20

// toldAgain is told that the channel was told the same once more, and took it.
func (w *World) toldAgain() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.faulty != "" || time.Since(w.wellSince) < w.source.Recovery() {
		return
	}
	if w.repeated++; w.repeated == oftenEnough {
		w.Log.Break(ruleAgain, "it was told %v %d times, though nothing has happened for %v", w.known, w.repeated, time.Since(w.happened))
	}
}

// checkTold compares what the channel was told with what its source says.
func (w *World) checkTold() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.faulty != "" {
		kept := time.Since(w.lastTold) < time.Hour
		w.disagree(w.known == nil && kept && time.Since(w.openedAt) > time.Minute, "nothing, though what was said before is kept")
		return
	}
	if time.Since(w.wellSince) < w.source.Recovery() {
		return
	}
	w.checkServers()
	lag := w.source.Lag() + time.Second
	if time.Since(w.changedAt) < lag || time.Since(w.openedAt) < lag {
		return
	}
	w.lastTold = time.Now()
	want, of := w.settings.near.groups(w.settings.sees(w.source.Sees(w.truth)))
	nothing := w.known == nil && len(want.serving()) == 0 // which is told as an error
	w.disagree(!nothing && (!want.same(w.known) || !slices.Equal(of, w.knownOf)), fmt.Sprintf("%v of %d, want %v of %d", w.known, w.knownOf, want, of))
}

// disagree breaks the rule if told so, once until it is told otherwise.
func (w *World) disagree(disagree bool, what string) {
	if disagree && !w.disagrees {
		w.Log.Break(ruleTold, "the channel was told %s", what)
	}
	w.disagrees = disagree
}

// same says whether calls go to the same places by the same weights, in the same
// priorities, whatever localities are called, and the same outliers are detected there.
func (t Truth) same(other Truth) bool {
	return slices.EqualFunc(t, other, func(a, b Tier) bool {
		return maps.EqualFunc(a.weighted(), b.weighted(), alike) && (len(a.Serving()) == 0 || a.detection() == b.detection())
	})
}

// weighted returns the part of the calls that each locality has, by its endpoints that take calls, with
// their weights.
func (t Tier) weighted() map[string]float64 {
	all, sum := make(map[string]float64), 0.0
	for _, l := range t {
		var endpoints []string
		for _, e := range l.Endpoints {
			if !e.Draining {
				endpoints = append(endpoints, fmt.Sprintf("%s*%d", e.Address, e.Weight))
			}
		}
		if slices.Sort(endpoints); len(endpoints) > 0 {
			all[fmt.Sprint(endpoints)] += float64(l.Weight)
			sum += float64(l.Weight)
		}
	}
	for name := range all {
		all[name] /= sum
	}
	return all
}

// alike says whether two parts are the same but for rounding.
func alike(a, b float64) bool { return math.Abs(a-b) < 1e-4 }
