package sim

import (
	"math"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
)

// A simulation ends in one of two ways. Either everything recovers, or only one endpoint does,
// which is called the core. All other faults then stay, and more are added. The channel must still
// find the core.

// visible are the faults that end or prevent connections, so gRFC A56 notices them.
var visible = []func(*World, string){(*World).down, (*World).refuse, (*World).blackhole, (*World).oneWay, (*World).pause, (*World).sicken}

// detectable are the faults that make calls fail, so only outlier detection notices them.
var detectable = []func(*World, string){(*World).err, (*World).hang}

const coreSample = 100

// conclude ends the random events and makes the last checks. Calls continue.
func (w *World) conclude() {
	core := w.rand.IntN(2) == 0
	if core && w.pair == nil && w.endWithCore() || core && w.pair != nil && w.endPairWithCore() {
		return
	}
	w.restoreSource()
	w.all("recovers", (*World).heal)
	w.touch()
	pass(w.source.Recovery())
	if w.pair == nil {
		w.quiet()
	}
	w.mark(markHealed)
}

// drawCore returns a random endpoint that the channel knows, or "" if it knows none.
func (w *World) drawCore() string {
	w.mu.Lock()
	known := slices.DeleteFunc(w.known.serving(), func(address string) bool { return address == nobody })
	w.mu.Unlock()
	if len(known) == 0 {
		return ""
	}
	return known[w.rand.IntN(len(known))]
}

// endWithCore makes most endpoints fail for good, heals one, and checks that calls succeed after
// the timers have fired. It returns false if the channel knows no endpoint, or learns meanwhile
// that the endpoint is gone.
func (w *World) endWithCore() bool {
	core := w.drawCore()
	if core == "" {
		return false
	}
	w.Log.Event("only %s recovers, permanently", core)
	sees := w.settings.detects == "true"
	faults := visible
	if sees {
		faults = slices.Concat(visible, detectable)
	}
	for _, address := range w.addresses {
		if address == core {
			continue
		}
		if !sees {
			w.healCalls(address)
		}
		if w.rand.IntN(4) > 0 {
			faults[w.rand.IntN(len(faults))](w, address)
		}
	}
	w.heal(core)
	w.touch()
	switch w.rand.IntN(4) {
	case 0:
		w.failSource()
	case 1:
		w.restoreSource()
		pass(w.source.Recovery())
		w.reopen()
	case 2:
		w.failSource()
		w.reopen() // the new channel has the stored answer
	}
	w.touch()
	w.quiet() // waits for the sum of the timers
	w.mu.Lock()
	known := slices.Contains(w.known.serving(), core)
	w.mu.Unlock()
	if !known {
		w.Log.Event("%s is not one of the channel's any more", core)
		return false
	}
	w.checkCore(core, sees)
	return true
}

// healCalls makes calls to a backend succeed. It is needed without outlier detection, because the
// channel would not notice that they fail.
func (w *World) healCalls(address string) {
	w.mu.Lock()
	c := w.conditions[address]
	fails := c.hang || c.answer != codes.OK
	w.mu.Unlock()
	if fails {
		w.change(address, func(c *condition) { c.hang, c.answer = false, codes.OK })
		w.backends[address].Answer(codes.OK)
		w.backends[address].Hang(false)
	}
}

// checkCore makes calls and checks how many of them succeed.
func (w *World) checkCore(core string, sees bool) {
	w.setChecking(true)
	defer w.setChecking(false)
	answered := 0
	var last error
	for range coreSample {
		c := &call{start: time.Now()}
		if _, err := c.make(w.cc, max(5*time.Second, w.settings.hang), true); err != nil {
			last = err
		} else {
			answered++
		}
		pass(time.Second)
	}
	w.judgeCore(core, answered, coreSample, sees, last)
}

// judgeCore checks how many calls succeeded. All must succeed, except in three cases that outlier
// detection cannot avoid. First, a third may fail, because ejected endpoints come back that still
// fail. Second, if only some endpoints of a priority work, each endpoint that comes back fails up
// to five calls, or all of its calls if they are rare. The priority must still do nearly as well as
// without outlier detection. Third, if connections are reset in bursts of 80 calls, up to 34 of
// these calls are in flight.
func (w *World) judgeCore(core string, answered, made int, sees bool, last error) {
	want := float64(made)
	if sees {
		want *= min(2./3, 0.8*w.leastShare())
	}
	if w.pair != nil && w.pair.has("resets") {
		want *= 3. / 4
	}
	if float64(answered) < math.Floor(want) {
		w.Log.Break(ruleCore, "%s works, and all timers have run, but of %d calls only %d succeeded, want %.0f; the last error: %v", core, made, answered, math.Floor(want), last)
	}
	w.mark(markCore)
}

// leastShare returns the lowest share of calls that succeed in a priority without outlier
// detection. Priorities in which all calls fail do not count, because calls leave them. Endpoints
// whose connections are reset before they answer count as failing.
func (w *World) leastShare() float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	least := 1.
	for _, tier := range w.known {
		works := 0.
		for address, share := range tier.Shares(w.connects) {
			c := w.conditions[address]
			if c.works() && (w.pair == nil || !w.judge.cutShort(c, time.Now())) {
				works += share
			}
		}
		if works > 0 {
			least = min(least, works)
		}
	}
	return least
}

// endPairWithCore makes both faults permanent, heals one endpoint, and checks that calls succeed.
// There are no more updates, because one could remove the endpoint.
func (w *World) endPairWithCore() bool {
	core := w.drawCore()
	if core == "" {
		return false
	}
	all := w.strikeAll()
	w.Log.Event("only %s recovers, permanently", core)
	for _, s := range all {
		s.tier = slices.DeleteFunc(slices.Clone(s.tier), func(address string) bool { return address == core })
		if s.name == "update" || s.name == "source" {
			s.again = nil
		}
	}
	w.heal(core)
	w.sustain(all)
	w.mu.Lock()
	known, before := slices.Contains(w.known.serving(), core), w.calls
	w.mu.Unlock()
	if !known {
		w.Log.Event("%s is not one of the channel's any more", core)
		return false
	}
	w.sustain(all)
	w.mu.Lock()
	after := w.calls
	w.mu.Unlock()
	w.judgeCore(core, after.Answered-before.Answered, after.Made-before.Made, true, nil)
	return true
}
