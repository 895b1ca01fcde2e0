package sim

import (
	"math"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
)

// A simulation ends in one of two ways. Either all backends recover, or only one of them does, the
// survivor. In that case all other faults stay, we add some more, and the channel must find the
// survivor.

// connectionFaults end or prevent connections, so gRFC A56 reacts to them.
var connectionFaults = []func(*World, string){(*World).down, (*World).refuse, (*World).blackhole, (*World).oneWay, (*World).pause, (*World).stopServing}

// callFaults make calls fail on connections that work. Only outlier detection reacts to those.
var callFaults = []func(*World, string){(*World).failCalls, (*World).hang}

const survivorCalls = 100

func (w *World) conclude(load bool) {
	// With load, we run the checks for that instead. Calls continue in the meantime.
	oneSurvives := w.rand.IntN(2) == 0 && !load
	if oneSurvives && w.pair == nil && w.endWithSurvivor() || oneSurvives && w.pair != nil && w.endPairWithSurvivor() {
		return
	}
	w.restoreSource()
	w.forAllBackends("recovers", (*World).heal)
	w.recordEvent()
	sleep(w.source.Recovery())
	if w.pair == nil {
		w.checkWhenQuiet()
	}
	if w.pair == nil && w.settings.overflow {
		w.checkLoad()
	}
}

func (w *World) drawSurvivor() string {
	w.mu.Lock()
	known := slices.DeleteFunc(w.knownTruth.serving(), func(address string) bool { return address == deadAddress })
	w.mu.Unlock()
	if len(known) == 0 {
		return ""
	}
	return known[w.rand.IntN(len(known))]
}

// endWithSurvivor returns false if the channel has no endpoints, or if an update removes the
// survivor.
func (w *World) endWithSurvivor() bool {
	survivor := w.drawSurvivor()
	if survivor == "" {
		return false
	}
	w.Log.Event("only %s recovers, permanently", survivor)
	detects := w.settings.detects
	faults := connectionFaults
	if detects {
		faults = slices.Concat(connectionFaults, callFaults)
	}
	for _, address := range w.addresses {
		if address == survivor {
			continue
		}
		if !detects {
			w.healCallFaults(address)
		}
		if w.rand.IntN(4) > 0 {
			faults[w.rand.IntN(len(faults))](w, address)
		}
	}
	w.heal(survivor)
	w.recordEvent()
	switch w.rand.IntN(4) {
	case 0:
		w.failSource()
	case 1:
		w.restoreSource()
		sleep(w.source.Recovery())
		w.reopen()
	case 2:
		w.failSource()
		w.reopen() // the new channel uses the stored answer
	}
	w.recordEvent()
	w.checkWhenQuiet() // this also waits until all timers have fired
	w.mu.Lock()
	known := slices.Contains(w.knownTruth.serving(), survivor)
	w.mu.Unlock()
	if !known {
		w.Log.Event("%s is not one of the channel's any more", survivor)
		return false
	}
	w.checkSurvivor(survivor, detects)
	return true
}

func (w *World) healCallFaults(address string) {
	w.mu.Lock()
	c := w.conditions[address]
	hasFault := c.hang || c.code != codes.OK
	w.mu.Unlock()
	if hasFault {
		w.change(address, func(c *condition) { c.hang, c.code = false, codes.OK })
		w.backends[address].SetCode(codes.OK)
		w.backends[address].SetHang(false)
	}
}

func (w *World) checkSurvivor(survivor string, detects bool) {
	w.setChecking(true)
	defer w.setChecking(false)
	answered := 0
	var last error
	for range survivorCalls {
		c := &call{start: time.Now()}
		if _, err := c.invoke(w.cc, max(5*time.Second, w.settings.shortDeadline), true); err != nil {
			last = err
		} else {
			answered++
		}
		sleep(time.Second)
	}
	w.judgeSurvivor(survivor, answered, survivorCalls, detects, last)
}

// judgeSurvivor checks how many of the calls were answered. Without outlier detection, that must be
// all of them. With it, up to a third may fail, since ejected endpoints come back while they still
// fail. If only some endpoints of a priority work, it gets worse: each one that comes back fails up
// to five calls, or all of them if calls are rare. We then want 80 % of the success rate without
// outlier detection. If connections are reset during bursts of 80 calls, another quarter may fail,
// because up to 34 of the 80 are in flight.
func (w *World) judgeSurvivor(survivor string, answered, made int, detects bool, last error) {
	want := float64(made)
	if detects {
		want *= min(2./3, 0.8*w.leastShare())
	}
	if w.pair != nil && w.pair.has("resets") {
		want *= 3. / 4
	}
	if float64(answered) < math.Floor(want) {
		w.Log.Break(ruleCore, "%s works, and all timers have run, but of %d calls only %d succeeded, want %.0f; the last error: %v", survivor, made, answered, math.Floor(want), last)
	}
}

// leastShare ignores priorities in which every call fails, since calls leave those. But it's 0 if
// several endpoints of one above the survivor's fail and one of them hangs: without overflow, it
// takes five calls to eject each, and by the time the last one is ejected, the first one is back.
// If an endpoint's connections are always reset before it responds, it counts as failing.
func (w *World) leastShare() float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	least, isFirst := 1., true
	for _, tier := range w.knownTruth {
		working, failing, hangs := 0., 0, false
		for address, share := range tier.Shares(w.reachable) {
			c := w.conditions[address]
			if hangs = hangs || c.hang; !c.works() {
				failing++
			}
			if c.works() && (w.pair == nil || !w.judge.cutShort(c, time.Now())) {
				working += share
			}
		}
		if working > 0 && w.looksFull(tier.Serving()) {
			return 0
		}
		if working > 0 || hangs && failing > 1 && isFirst && !w.settings.overflow {
			least, isFirst = min(least, working), false
		}
	}
	return least
}

func (w *World) endPairWithSurvivor() bool {
	// We don't publish any more updates, because one could remove the survivor.
	survivor := w.drawSurvivor()
	if survivor == "" {
		return false
	}
	all := w.beginFaults()
	w.Log.Event("only %s recovers, permanently", survivor)
	for _, s := range all {
		s.endpoints = slices.DeleteFunc(slices.Clone(s.endpoints), func(address string) bool { return address == survivor })
		if s.name == "update" || s.name == "source" {
			s.repeat = nil
		}
	}
	w.heal(survivor)
	w.sustain(all)
	w.mu.Lock()
	known, before := slices.Contains(w.knownTruth.serving(), survivor), w.calls
	w.mu.Unlock()
	if !known {
		w.Log.Event("%s is not one of the channel's any more", survivor)
		return false
	}
	w.sustain(all)
	w.mu.Lock()
	after := w.calls
	w.mu.Unlock()
	w.judgeSurvivor(survivor, after.Answered-before.Answered, after.Made-before.Made, true, nil)
	return true
}
