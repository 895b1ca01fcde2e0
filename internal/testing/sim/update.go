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
	w.publish(w.changedTruth())
}

func (w *World) updateAndBack() {
	w.mu.Lock()
	truth := w.truth
	w.mu.Unlock()
	w.publish(w.changedTruth())
	w.publish(truth)
}

// drainedAbove adds or removes a drained priority above all others. According to gRFC A56, the
// priority in use doesn't change.
func (w *World) drainedAbove() {
	w.mu.Lock()
	truth := w.truth
	w.mu.Unlock()
	if i := slices.IndexFunc(truth, func(t Tier) bool { return t[0].Zone == "z" }); i >= 0 {
		w.publish(slices.Delete(slices.Clone(truth), i, i+1))
		return
	}
	drained := Tier{{Zone: "z", Weight: 1, Endpoints: []Endpoint{{Address: deadAddress, Weight: 1, Draining: true}}}}
	w.publish(append(EndpointSet{drained}, truth...))
}

// updateAtTimer publishes an update exactly when the failover timer of the first priority fires.
// The update adds usable endpoints to the second priority. Half of the time, all lower priorities
// are unreachable, so that the state of the second priority matters.
func (w *World) updateAtTimer() {
	truth := w.newTruth()
	w.Log.Event("an update coincides with a timer")
	unreachable := truth[:2]
	if w.rand.IntN(2) == 0 {
		unreachable = truth
	}
	for _, tier := range unreachable {
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
	sleep(w.settings.failoverTimeout)
	w.publish(truth)
}

func (w *World) publishOlder() {
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
	w.sourceFault = "it fails"
	w.mu.Unlock()
	what := w.source.Fail(w.rand)
	w.Log.Event("%s", what)
}

func (w *World) restoreSource() {
	w.mu.Lock()
	if w.sourceFault != "" {
		w.sourceFault, w.sourceWorksSince = "", time.Now()
	}
	w.sourceChangedAt = time.Now() // Restore publishes the endpoints again even if there was no fault
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
	openFirst := w.rand.IntN(2) == 0
	if !openFirst {
		_ = old.Close()
	}
	if err := w.dial(); err != nil {
		w.Log.Break(ruleWait, "the channel cannot be opened again: %v", err)
	}
	if openFirst {
		_ = old.Close()
	}
}

func (w *World) refuseAndReopen() {
	s := sourceOf[*edsSource](w)
	if s == nil {
		w.reopen()
		return
	}
	w.restoreSource()
	w.mu.Lock()
	w.sourceFault = "it is refused"
	w.mu.Unlock()
	w.Log.Event("the management server sends an invalid resource")
	s.openTemporary()
	s.controls[0].sendInvalid()
	s.openTemporary()
	w.reopen()
	sleep(time.Second)
	s.closeTemporary()
	s.Restore()
	w.restoreSource()
}
