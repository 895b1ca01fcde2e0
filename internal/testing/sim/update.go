package sim

import (
	"slices"
	"time"
)

func (w *World) update() {
	if w.rand.IntN(3) == 0 {
		w.publish(w.newTruth())
		return
	}
	w.publish(w.changed())
}

// updateAndBack publishes twice in a row: a source that is read while it is written.
func (w *World) updateAndBack() {
	w.mu.Lock()
	truth := w.truth
	w.mu.Unlock()
	w.publish(w.changed())
	w.publish(truth)
}

// drainedAbove puts a priority without any serving endpoint above all others, or takes
// it away: A56 goes on with the one in use.
func (w *World) drainedAbove() {
	w.mu.Lock()
	truth := w.truth
	w.mu.Unlock()
	if i := slices.IndexFunc(truth, func(t Tier) bool { return t[0].Zone == "z" }); i >= 0 {
		w.publish(slices.Delete(slices.Clone(truth), i, i+1))
		return
	}
	drained := Tier{{Zone: "z", Weight: 1, Endpoints: []Endpoint{{Address: nobody, Weight: 1, Draining: true}}}}
	w.publish(append(Truth{drained}, truth...))
}

// detectAnew lets a cluster say something else of outlier detection, with the endpoints as
// they are or with others.
func (w *World) detectAnew() {
	redetect(w.source, w.rand)
	if w.rand.IntN(3) == 0 {
		w.publish(w.changed())
		return
	}
	w.mu.Lock()
	truth := w.truth
	w.mu.Unlock()
	w.publish(truth)
}

// updateOnTime lets an update come at the very moment at which the first priority's
// failover timer fires: the second one, which has had no endpoints, gets them then. Now and
// then those below cannot be reached either, so that it matters what the second one is.
func (w *World) updateOnTime() {
	truth := w.newTruth()
	w.Log.Event("an update is to meet a timer")
	lost := truth[:2]
	if w.rand.IntN(2) == 0 {
		lost = truth
	}
	for _, tier := range lost {
		for _, address := range tier.Serving() {
			w.blackhole(address)
		}
	}
	drained := truth.Clone()
	for i := range drained[1] {
		for j := range drained[1][i].Endpoints {
			drained[1][i].Endpoints[j].Draining = true
		}
	}
	w.publish(drained)
	pass(w.settings.failover)
	w.publish(truth)
}

// older lets the source go back to what it said before, as a replica that lags does.
func (w *World) older() {
	w.mu.Lock()
	history := w.history
	w.mu.Unlock()
	if len(history) > 0 {
		w.Log.Event("the source goes back")
		w.publish(history[len(history)-1-w.rand.IntN(min(5, len(history)))])
	}
}

func (w *World) failSource() {
	w.restoreSource() // one thing at a time
	w.mu.Lock()
	w.faulty = "it fails"
	w.mu.Unlock()
	what := w.source.Fail(w.rand)
	w.Log.Event("%s", what)
}

func (w *World) restoreSource() {
	w.mu.Lock()
	if w.faulty != "" {
		w.faulty, w.wellSince = "", time.Now()
	}
	w.mu.Unlock()
	w.Log.Event("the source works")
	w.source.Restore()
}

// reopen closes the channel, and opens another one at once.
func (w *World) reopen() {
	w.Log.Event("the channel is closed and opened again")
	w.mu.Lock()
	old := w.cc
	w.cc = nil
	w.mu.Unlock()
	first := w.rand.IntN(2) == 0
	if !first {
		_ = old.Close()
	}
	if err := w.dial(); err != nil {
		w.Log.Break(ruleWait, "the channel cannot be opened again: %v", err)
	}
	if first {
		_ = old.Close()
	}
}

// refuseAndReopen lets what the client subscribes to change while it refuses something.
func (w *World) refuseAndReopen() {
	s := part[*edsSource](w)
	if s == nil {
		w.reopen()
		return
	}
	w.restoreSource()
	w.mu.Lock()
	w.faulty = "it is refused"
	w.mu.Unlock()
	w.Log.Event("the management server sends what must be refused")
	s.passBy()
	s.controls[0].refuse()
	s.passBy()
	w.reopen()
	pass(time.Second)
	s.leave()
	s.Restore()
	w.restoreSource()
}
