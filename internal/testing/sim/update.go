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

// updateAndBack publishes a change and then the old endpoints again. A source does that when it is
// read in the middle of a write.
func (w *World) updateAndBack() {
	w.mu.Lock()
	truth := w.truth
	w.mu.Unlock()
	w.publish(w.changed())
	w.publish(truth)
}

// drainedAbove adds or removes a priority without usable endpoints above all others. By gRFC A56,
// the priority in use stays.
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

// updateOnTime publishes an update at the very time when the failover timer of the first priority
// fires. The update adds endpoints to the second priority. Sometimes the lower priorities cannot be
// reached, so that the state of the second one matters.
func (w *World) updateOnTime() {
	truth := w.newTruth()
	w.Log.Event("an update coincides with a timer")
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

// older publishes an earlier version of the endpoints, like a replica that lags.
func (w *World) older() {
	w.mu.Lock()
	history := w.history
	w.mu.Unlock()
	if len(history) > 0 {
		w.Log.Event("the source returns to an earlier state")
		w.publish(history[len(history)-1-w.rand.IntN(min(5, len(history)))])
	}
}

func (w *World) failSource() {
	w.restoreSource()
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
	w.changedAt = time.Now() // Restore writes a file again even if the source had no fault
	w.mu.Unlock()
	w.Log.Event("the source works")
	w.source.Restore()
}

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

// refuseAndReopen changes the client's subscriptions while it refuses a response.
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
	w.Log.Event("the management server sends an invalid resource")
	s.passBy()
	s.controls[0].refuse()
	s.passBy()
	w.reopen()
	pass(time.Second)
	s.leave()
	s.Restore()
	w.restoreSource()
}
