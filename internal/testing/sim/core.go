package sim

import (
	"math"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
)

// A world ends in one of two ways, which the seed draws. Either everything recovers, or only one
// endpoint of one priority does: the permanent core. All other faults stay, and more are added. The
// channel must find the core without anything else recovering.

// visible are the faults that gRFC A56 notices, because connections end or cannot be made.
var visible = []func(*World, string){(*World).down, (*World).refuse, (*World).blackhole, (*World).oneWay, (*World).pause, (*World).sicken}

// detectable are the faults that only outlier detection notices, because calls fail.
var detectable = []func(*World, string){(*World).err, (*World).hang}

// coreSample is how many calls are made to check the core.
const coreSample = 100

// conclude ends the events of a world and checks it for the last time. Calls go on.
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

// drawCore draws one of the endpoints that the channel knows, or "" if it knows none.
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
		w.failSource() // the channel keeps what it knows
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

// healCalls ends the faults of a backend that only outlier detection notices. Without it, gRFC A56
// would send calls there for good.
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

// checkCore makes calls and judges them, once the world has settled and has a working endpoint.
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

// judgeCore judges the calls to a world with a core. All must succeed, except in three cases that
// outlier detection cannot avoid. First, a third may fail, as trial calls or because ejected
// endpoints come back that still fail. Second, in a priority that works in part, each endpoint that
// comes back fails up to five calls, or all of its calls if they are rare; the priority must still
// do nearly as well as without outlier detection. Third, if connections are reset in bursts of 80
// calls, up to 34 of them are under way.
//
// In worlds of pairs, the judge judges each of these calls, too.
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

// leastShare returns the share of the calls that succeed without outlier detection in the priority
// that works least. Priorities in which nothing works do not count, because calls leave them.
// Endpoints whose connections are reset before they answer work as little as those that fail.
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

// endPairWithCore makes both faults of a pair permanent, heals one endpoint, and checks that calls
// succeed. The judge judges each of them, too. There are no more updates, because one could remove
// the endpoint.
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
