package sim

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// concerns reports whether a change of an address may change the priority in use. Addresses of
// lower priorities do not count. The caller holds the lock.
func (w *World) concerns(address string) bool {
	return w.lowest < 0 || slices.Contains(w.vital, address)
}

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

// moves reports whether an update may change the priority in use. Changes of lower priorities do
// not count. Unless the source has fixed positions, empty priorities do not count, either. The
// caller holds the lock.
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

// partly reports whether only some localities of a priority take calls. This happens while a
// controller writes its Services one by one.
func (t Tier) partly() bool {
	idle := func(l Locality) bool { return len(Tier{l}.Serving()) == 0 }
	return len(t.Serving()) > 0 && slices.ContainsFunc(t, idle)
}

// places returns the usable endpoints of a priority by locality.
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

// received records an update of the channel and reports whether it equals the last one.
func (w *World) received(c *channel, t tree, truth Truth, endpoints int) (again bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c != w.channel { // the channel is about to close
		c.settle(false)
		return false
	}
	c.mu.Lock()
	c.updateBefore, c.update, c.truth = c.update, t, truth
	c.detects = c.detects || truth.detects()
	c.settled = c.settled && !w.moves(truth)
	c.mu.Unlock()
	if want := fmt.Sprintf("%d in %d", endpoints, len(t.priorities)); w.announced != want {
		w.Log.Break(ruleNames, "the log announced %q, but the update has %q", w.announced, want)
	}
	w.markFirst()
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
	// The channel may have refused an answer without usable endpoints. The source then sends the
	// same answer again.
	again = w.known != nil && truth.String() == w.known.String()
	if !again {
		w.knownAt, w.repeated = now, 0
	}
	if !slices.Equal(w.known.detections(), truth.detections()) {
		w.detected = now
	}
	w.before, w.known, w.knownOf = w.known, truth, t.numbers()
	if w.judge != nil {
		w.judge.updated(truth)
	}
	if w.faulty == "" && time.Since(w.wellSince) > w.source.Recovery() { // before that, the update may come from one of several sources alone
		w.lastReceived = now
	}
	w.Log.Event("update of the channel: %v", truth)
	return again
}

// oftenEnough equal answers after an event are a fault. Fewer may be correct, because each endpoint
// that appears or disappears may cause a re-resolution.
const oftenEnough = 20

func (w *World) receivedAgain() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.faulty != "" || time.Since(w.wellSince) < w.source.Recovery() {
		return
	}
	if w.repeated++; w.repeated == oftenEnough {
		w.Log.Break(ruleAgain, "it received %v %d times, %v after the last event", w.known, w.repeated, time.Since(w.happened))
	}
}

// checkUpdate compares the channel's last update with the source.
func (w *World) checkUpdate() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.faulty != "" {
		kept := time.Since(w.lastReceived) < time.Hour
		w.disagree(w.known == nil && kept && time.Since(w.openedAt) > time.Minute, "nothing, although an earlier answer is kept")
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
	w.lastReceived = time.Now()
	want, of := w.settings.near.groups(w.settings.sees(w.source.Sees(w.truth)))
	nothing := w.known == nil && len(want.serving()) == 0 // such an answer is reported as an error
	w.disagree(!nothing && (!want.same(w.known) || !slices.Equal(of, w.knownOf)), fmt.Sprintf("%v of %d, want %v of %d", w.known, w.knownOf, want, of))
}

// disagree reports a difference when it begins, and not again while it lasts.
func (w *World) disagree(disagree bool, what string) {
	if disagree && !w.disagrees {
		w.Log.Break(ruleContent, "the channel has received %s", what)
	}
	w.disagrees = disagree
}

// same compares the priorities, their weights and their outlier detection. The names of localities
// do not matter.
func (t Truth) same(other Truth) bool {
	return slices.EqualFunc(t, other, func(a, b Tier) bool {
		return maps.EqualFunc(a.weighted(), b.weighted(), alike) && (len(a.Serving()) == 0 || a.detection() == b.detection())
	})
}

// weighted returns each locality's share of the calls. The keys list the usable endpoints of a
// locality and their weights.
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

func alike(a, b float64) bool { return math.Abs(a-b) < 1e-4 }
