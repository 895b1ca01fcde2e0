package sim

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// affectsPriorityInUse returns false for backends of lower priorities, as those can't change it. The
// caller holds the lock.
func (w *World) affectsPriorityInUse(address string) bool {
	return w.priorityInUse < 0 || slices.Contains(w.vitalAddresses, address)
}

func (w *World) publish(truth EndpointSet) {
	w.Log.Event("the source has %v", truth)
	w.mu.Lock()
	w.history = append(w.history, w.truth)
	w.truth, w.sourceChangedAt = truth, time.Now()
	for _, address := range truth.serving() {
		delete(w.removedAt, address)
	}
	w.mu.Unlock()
	w.source.Publish(truth)
}

// updateAffectsPriorityInUse ignores changes to lower priorities. It also ignores empty priorities,
// unless the source keeps them. The caller holds the lock.
func (w *World) updateAffectsPriorityInUse(truth EndpointSet) bool {
	if w.priorityInUse < 0 || w.priorityInUse >= len(w.knownTruth) {
		return true
	}
	keepsEmpty := w.source.KeepsEmptyPriorities()
	usedPriorities := func(t EndpointSet, n int) (shape []string) {
		for _, tier := range t {
			if keepsEmpty || len(tier.Serving()) > 0 {
				if shape = append(shape, fmt.Sprint(tier.endpointsByLocality())); len(shape) == n {
					break
				}
			}
		}
		return shape
	}
	n := len(usedPriorities(w.knownTruth[:w.priorityInUse+1], len(w.knownTruth)))
	return !slices.Equal(usedPriorities(w.knownTruth, n), usedPriorities(truth, n))
}

func (t Tier) endpointsByLocality() []string {
	var lists []string
	for _, l := range t {
		endpoints := Tier{l}.Serving()
		if slices.Sort(endpoints); len(endpoints) > 0 {
			lists = append(lists, l.Zone+fmt.Sprint(endpoints))
		}
	}
	slices.Sort(lists)
	return lists
}

func (t EndpointSet) serving() []string {
	var all []string
	for _, tier := range t {
		all = append(all, tier.Serving()...)
	}
	return all
}

func (w *World) received(c *channel, t tree, truth EndpointSet, endpoints int) (identical bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c != w.channel { // this channel is about to be closed
		c.setSettled(false)
		return false
	}
	c.mu.Lock()
	c.previousUpdate, c.update, c.truth = c.update, t, truth
	c.settled = c.settled && !w.updateAffectsPriorityInUse(truth)
	c.mu.Unlock()
	w.checkAnnounced(fmt.Sprintf("%d in %d", endpoints, len(t.priorities)))
	now, serving := time.Now(), truth.serving()
	for _, address := range w.knownTruth.serving() {
		if !slices.Contains(serving, address) {
			w.removedAt[address] = now
		}
	}
	for _, address := range serving {
		delete(w.removedAt, address)
		w.everKnown[address] = true
	}
	// If the channel refused an answer because it had no usable endpoints, the source may send the
	// same one again.
	identical = w.knownTruth != nil && truth.String() == w.knownTruth.String()
	if !identical {
		w.updatedAt, w.repeated = now, 0
	}
	w.previousTruth, w.knownTruth = w.knownTruth, truth
	if w.judge != nil {
		w.judge.updated(truth)
	}
	if w.sourceFault == "" && time.Since(w.sourceWorksSince) > w.source.Recovery() { // until then, some of several sources may still be missing
		w.lastReceived = now
	}
	w.Log.Event("update of the channel: %v", truth)
	return identical
}

func (w *World) checkAnnounced(size string) {
	// When the channel is reopened, the old one may still announce an update.
	isLast := len(w.announced) > 0 && w.announced[len(w.announced)-1] == size
	if !isLast && (time.Since(w.openedAt) > 0 || !slices.Contains(w.announced, size)) {
		w.Log.Break(ruleNames, "the log announced %q, but the update has %q", w.announced, size)
	}
}

// maxIdentical is how many identical updates after an event break a rule. We have to allow some,
// because every endpoint that comes or goes may cause a re-resolution.
const maxIdentical = 20

func (w *World) receivedIdentical() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sourceFault != "" || time.Since(w.sourceWorksSince) < w.source.Recovery() {
		return
	}
	if w.repeated++; w.repeated == maxIdentical {
		w.Log.Break(ruleAgain, "it received %v %d times, %v after the last event", w.knownTruth, w.repeated, time.Since(w.lastEvent))
	}
}

func (w *World) checkUpdate() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sourceFault != "" {
		storedAnswerIsFresh := time.Since(w.lastReceived) < time.Hour
		w.reportDifference(w.knownTruth == nil && storedAnswerIsFresh && time.Since(w.openedAt) > time.Minute, "nothing, although an earlier answer is kept")
		return
	}
	if time.Since(w.sourceWorksSince) < w.source.Recovery() {
		return
	}
	w.checkServers()
	lag := w.source.Lag() + time.Second
	if time.Since(w.sourceChangedAt) < lag || time.Since(w.openedAt) < lag {
		return
	}
	w.lastReceived = time.Now()
	want := w.source.Visible(w.truth)
	nothing := w.knownTruth == nil && len(want.serving()) == 0 // in that case, the channel gets an error rather than an update
	w.reportDifference(!nothing && !want.equivalent(w.knownTruth), fmt.Sprintf("%v, want %v", w.knownTruth, want))
}

func (w *World) reportDifference(differs bool, what string) {
	if differs && !w.contentDiffers {
		w.Log.Break(ruleContent, "the channel has received %s", what)
	}
	w.contentDiffers = differs
}

// equivalent reports whether two lists have the same priorities with the same weights. The names of
// localities don't matter.
func (t EndpointSet) equivalent(other EndpointSet) bool {
	return slices.EqualFunc(t, other, func(a, b Tier) bool {
		return maps.EqualFunc(a.sharesByLocality(), b.sharesByLocality(), almostEqual)
	})
}

func (t Tier) sharesByLocality() map[string]float64 {
	// The key of a locality is the list of its usable endpoints and their weights.
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

func almostEqual(a, b float64) bool { return math.Abs(a-b) < 1e-4 }
