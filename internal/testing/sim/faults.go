package sim

import (
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
)

// mishap is a fault of the endpoints of one priority or, if strike and again are nil, a setting of
// the client.
type mishap struct {
	name   string
	strike func(w *World, tier []string)
	again  func(w *World, tier []string) // called repeatedly while the fault lasts
	each   [2]time.Duration              // the shortest and the longest interval of again
}

var faultNames = strings.Fields("kill refuse hang errors some below ends resets update seldom streams source")

func twelve() []mishap {
	return []mishap{
		{name: "kill", strike: each((*World).down)},
		{name: "refuse", strike: (*World).refuseAll},
		{name: "hang", strike: (*World).hangAll},
		{name: "errors", strike: (*World).errAll},
		{name: "some", strike: (*World).errSome},
		{name: "below", strike: (*World).loseSome},
		{name: "ends", again: (*World).endConnections, each: [2]time.Duration{5 * time.Second, time.Minute}},
		{name: "resets", again: (*World).resetInUse, each: [2]time.Duration{20 * time.Second, 3 * time.Minute}},
		{name: "update", again: (*World).updateOnce, each: [2]time.Duration{time.Minute, 10 * time.Minute}},
		{name: "seldom"},
		{name: "streams"},
		{name: "source", strike: (*World).loseSource, again: (*World).updateOnce, each: [2]time.Duration{time.Minute, 10 * time.Minute}},
	}
}

func pairs() (all []string) {
	for i, a := range faultNames {
		for _, b := range faultNames[i+1:] {
			all = append(all, a+"+"+b)
		}
	}
	return all
}

func faultsOf(pair string) []mishap {
	var all []mishap
	known := twelve()
	for name := range strings.SplitSeq(pair, "+") {
		i := slices.IndexFunc(known, func(f mishap) bool { return f.name == name })
		if i < 0 {
			panic("unknown fault " + name)
		}
		all = append(all, known[i])
	}
	return all
}

func (f mishap) hits() bool { return f.strike != nil && f.name != "source" }

func each(do func(*World, string)) func(*World, []string) {
	return func(w *World, tier []string) {
		for _, address := range tier {
			do(w, address)
		}
	}
}

// refuseAll makes all endpoints of a priority refuse new connections. Existing ones may stay.
func (w *World) refuseAll(tier []string) {
	reset := w.rand.IntN(2) == 0
	for _, address := range tier {
		w.change(address, func(c *condition) { c.link.Refuse = true })
		if reset {
			w.network.Reset(address)
		}
	}
}

// hangAll makes the calls to a priority hang, drops its packets, or pauses its processes. A stream
// without a deadline does not notice hanging calls.
func (w *World) hangAll(tier []string) {
	do := []func(*World, string){(*World).blackhole, (*World).oneWay, (*World).pause, (*World).hang, (*World).hang}
	if w.pair.streams && !w.pair.limited {
		do = do[:3]
	}
	each(do[w.rand.IntN(len(do))])(w, tier)
}

func (w *World) errAll(tier []string) {
	code := []codes.Code{codes.Unavailable, codes.Internal, codes.ResourceExhausted}[w.rand.IntN(3)]
	for _, address := range tier {
		w.change(address, func(c *condition) { c.answer = code })
		w.backends[address].Answer(code)
	}
}

func (w *World) errSome(tier []string) { w.errAll(w.part(tier)) }

func (w *World) loseSome(tier []string) {
	do := []func(*World, []string){each((*World).down), (*World).refuseAll, (*World).hangAll, (*World).errAll}[w.rand.IntN(4)]
	w.rand.Shuffle(len(tier), func(i, j int) { tier[i], tier[j] = tier[j], tier[i] })
	do(w, tier[:max(1, len(tier)-1)])
}

// part returns random endpoints of a priority, but not all if there are several.
func (w *World) part(tier []string) []string {
	w.rand.Shuffle(len(tier), func(i, j int) { tier[i], tier[j] = tier[j], tier[i] })
	return tier[:1+w.rand.IntN(max(1, len(tier)-1))]
}

// endConnections ends the connections to one or all endpoints with GOAWAY, like a server that
// limits their age.
func (w *World) endConnections(tier []string) {
	if w.rand.IntN(2) == 0 {
		tier = tier[w.rand.IntN(len(tier)):][:1]
	}
	several := len(tier) > 1
	end := func() {
		w.mu.Lock()
		small := w.belowSmall(tier)
		if small {
			w.judge.away = time.Now().Add(time.Second + 10*w.link.Delay)
		}
		// Calls may move to another priority and return. With minReady, the priority may be too
		// small while an endpoint reconnects. With fastFailover, calls leave a priority that has
		// lost all connections.
		if w.settings.minReady > 0 || several && w.settings.fast {
			w.judge.resets++
		}
		w.mu.Unlock()
		for _, address := range tier {
			w.Log.Event("connections to %s end", address)
			w.backends[address].GoAway()
		}
	}
	if w.rand.IntN(4) > 0 {
		end()
		return
	}
	w.inBurst(end)
}

// belowSmall reports whether a priority is about to lose its last connections while an endpoint of
// a higher one answers. Calls then go to the higher one, even if too few of its endpoints are
// READY. The caller holds the lock.
func (w *World) belowSmall(endpoints []string) bool {
	for i, tier := range w.known {
		if !slices.Contains(tier.Serving(), endpoints[0]) {
			continue
		}
		stays := func(address string) bool {
			return !slices.Contains(endpoints, address) && w.answers(address)
		}
		works := func(address string) bool { return w.conditions[address].works() }
		return w.settings.minReady > 0 && slices.ContainsFunc(w.known[:i].serving(), works) && !slices.ContainsFunc(tier.Serving(), stays)
	}
	return false
}

func (w *World) resetInUse(tier []string) {
	if w.rand.IntN(3) == 0 {
		tier = w.part(tier)
	}
	w.inBurst(func() {
		w.mu.Lock()
		w.judge.resets++
		for _, address := range tier {
			w.conditions[address].reset = time.Now()
		}
		w.mu.Unlock()
		for _, address := range tier {
			w.Log.Event("connections to %s are reset", address)
			w.network.Reset(address)
		}
	})
}

func (w *World) updateOnce([]string) {
	if w.rand.IntN(3) == 0 {
		w.older()
		return
	}
	w.publish(w.changed())
}

func (w *World) loseSource([]string) { w.failSource() }

// drawTier returns the endpoints of a random priority, usually the first. If several is set, it
// prefers one with several endpoints.
func (w *World) drawTier(r *rand.Rand, several bool) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var tiers [][]string
	for _, tier := range w.known {
		if serving := tier.Serving(); len(serving) > 1 || len(serving) == 1 && !several {
			tiers = append(tiers, serving)
		}
	}
	if len(tiers) == 0 {
		return nil
	}
	return slices.DeleteFunc(tiers[r.IntN(3)%len(tiers)*r.IntN(2)], func(address string) bool { return address == nobody })
}
