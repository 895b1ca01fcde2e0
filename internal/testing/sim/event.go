package sim

import (
	"time"

	"google.golang.org/grpc/codes"
)

type event struct {
	name   string
	weight int // average; each simulation draws its own
	run    func(*World)
}

// repairs are the events that end faults. Every simulation has all of them. World.mu isn't held
// while an event runs.
var repairs = []event{
	{"backend up", 14, func(w *World) { w.forRandomBackend("recovers", (*World).heal) }},
	{"priority up", 8, func(w *World) { w.forRandomPriority("recovers", (*World).heal) }},
	{"everything up", 4, func(w *World) { w.forAllBackends("recovers", (*World).heal) }},
	{"resume", 2, func(w *World) { w.forAllBackends("is resumed", (*World).resume) }},
	{"source works", 4, (*World).restoreSource},
}

var disturbances = []event{
	{"backend down", 10, func(w *World) { w.forRandomBackend("is killed", (*World).down) }},
	{"priority down", 6, func(w *World) { w.forRandomPriority("is killed", (*World).down) }},
	{"reset", 4, func(w *World) { w.forRandomBackend("has its connections reset", (*World).reset) }},
	{"half open", 3, func(w *World) { w.forRandomBackend("drops its connections silently", (*World).breakHalfOpen) }},
	{"go away", 4, func(w *World) { w.forRandomBackend("sends GOAWAY", (*World).goAway) }},
	{"blackhole", 5, func(w *World) { w.forRandomBackend("is cut off", (*World).blackhole) }},
	{"priority blackhole", 4, func(w *World) { w.forRandomPriority("is cut off", (*World).blackhole) }},
	{"one-way blackhole", 3, func(w *World) { w.forRandomBackend("is cut off one way", (*World).oneWay) }},
	{"refusal", 4, func(w *World) { w.forRandomBackend("refuses connections", (*World).refuse) }},
	{"slow", 4, func(w *World) { w.forRandomBackend("is slow", (*World).slow) }},
	{"not serving", 5, func(w *World) { w.forRandomBackend("is NOT_SERVING", (*World).stopServing) }},
	{"errors", 6, func(w *World) { w.forRandomBackend("answers UNAVAILABLE", (*World).failCalls) }},
	{"priority errors", 6, func(w *World) { w.forRandomPriority("answers UNAVAILABLE", (*World).failCalls) }},
	{"errors before the end", 3, (*World).failCallsThenKill},
	{"hang", 2, func(w *World) { w.forRandomBackend("hangs", (*World).hang) }},
	{"pause", 4, func(w *World) { w.forRandomBackend("is paused", (*World).pause) }},
	{"priority pause", 2, func(w *World) { w.forRandomPriority("is paused", (*World).pause) }},
	{"pause and resume", 3, func(w *World) { w.forRandomBackend("is paused for a while", (*World).pauseBriefly) }},
	{"update", 12, (*World).update},
	{"update and back", 4, (*World).updateAndBack},
	{"drained above", 4, (*World).drainedAbove},
	{"update at timer", 3, (*World).updateAtTimer},
	{"older", 2, (*World).publishOlder},
	{"source fails", 3, (*World).failSource},
	{"reopen", 2, (*World).reopen},
	{"refuse and reopen", 2, (*World).refuseAndReopen},
}

func (w *World) runRandomEvent() {
	sum := 0
	for _, e := range w.events {
		sum += e.weight
	}
	n := w.rand.IntN(sum)
	for _, e := range w.events {
		if n -= e.weight; n < 0 {
			w.recordEvent()
			e.run(w)
			w.recordEvent()
			return
		}
	}
}

func (w *World) recordEvent() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lastEvent, w.repeated = time.Now(), 0
}

func (w *World) forRandomBackend(what string, f func(*World, string)) {
	address := w.addresses[w.rand.IntN(len(w.addresses))]
	w.Log.Event("%s %s", address, what)
	f(w, address)
}

func (w *World) forRandomPriority(what string, f func(*World, string)) {
	w.mu.Lock()
	truth := w.truth
	w.mu.Unlock()
	if len(truth) == 0 {
		return
	}
	i := w.rand.IntN(len(truth))
	w.Log.Event("all of p%d %s", i, what)
	for _, address := range truth[i].Serving() {
		if address != deadAddress {
			f(w, address)
		}
	}
}

func (w *World) forAllBackends(what string, f func(*World, string)) {
	w.Log.Event("everything %s", what)
	for _, address := range w.addresses {
		f(w, address)
	}
}

func (w *World) change(address string, change func(*condition)) {
	w.mu.Lock()
	c := w.conditions[address]
	before := c.behaviour()
	change(c)
	c.changedAt = time.Now()
	if w.judge != nil && c.behaviour() != before {
		w.judge.backendChanged(address)
	}
	w.network.SetLink(address, c.link)
	ch, affected := w.channel, w.affectsPriorityInUse(address)
	w.mu.Unlock()
	if affected {
		ch.setSettled(false)
	}
}

func (w *World) down(address string) {
	w.change(address, func(c *condition) { c.up = false })
	w.backends[address].Down()
}

func (w *World) heal(address string) {
	// Clients may notice immediately, so we must record the recovery before it happens.
	w.mu.Lock()
	well := w.conditions[address].works() && w.conditions[address].link == w.link
	w.mu.Unlock()
	if !well {
		w.change(address, func(c *condition) { c.up, c.notServing, c.hang, c.code, c.link = true, false, false, codes.OK, w.link })
	}
	b := w.backends[address]
	b.Up()
	b.SetServing(true)
	b.SetCode(codes.OK)
	b.SetHang(false)
}

func (w *World) reset(address string) {
	w.change(address, func(*condition) {})
	w.network.Reset(address)
}

func (w *World) breakHalfOpen(address string) {
	w.change(address, func(*condition) {})
	w.network.HalfOpen(address)
}

func (w *World) goAway(address string) {
	w.change(address, func(*condition) {})
	w.backends[address].GoAway()
}

func (w *World) blackhole(address string) {
	w.change(address, func(c *condition) { c.link.LoseIn, c.link.LoseOut = true, true })
}

func (w *World) oneWay(address string) {
	out := w.rand.IntN(2) == 0
	w.change(address, func(c *condition) { c.link.LoseOut, c.link.LoseIn = out, !out })
}

func (w *World) refuse(address string) {
	w.change(address, func(c *condition) { c.link.Refuse = true })
	w.network.Reset(address)
}

func (w *World) slow(address string) {
	delay := time.Duration(w.rand.IntN(300)) * time.Millisecond
	w.change(address, func(c *condition) { c.link.Delay, c.link.Rate = delay, 4096 })
}

func (w *World) pause(address string) {
	w.change(address, func(c *condition) { c.link.Pause = true })
}

func (w *World) resume(address string) {
	w.mu.Lock()
	paused := w.conditions[address].link.Pause
	w.mu.Unlock()
	if paused {
		w.change(address, func(c *condition) { c.link.Pause = false })
	}
}

// pauseBriefly pauses a backend for up to a minute, so keepalive may or may not close its
// connections.
func (w *World) pauseBriefly(address string) {
	w.pause(address)
	w.recordEvent()
	sleep(time.Duration(w.rand.Int64N(int64(time.Minute))))
	w.Log.Event("%s is resumed", address)
	w.resume(address)
}

func (w *World) stopServing(address string) {
	// With pickFirst, the channel ignores health checks.
	w.change(address, func(c *condition) { c.notServing = !w.settings.pickFirst })
	w.backends[address].SetServing(false)
}

func (w *World) failCalls(address string) {
	w.change(address, func(c *condition) { c.code = codes.Unavailable })
	w.backends[address].SetCode(codes.Unavailable)
}

func (w *World) failCallsThenKill() {
	w.forAllBackends("answers UNAVAILABLE", (*World).failCalls)
	w.recordEvent()
	sleep(time.Duration(w.rand.Int64N(int64(2 * time.Minute))))
	w.forAllBackends("is killed", (*World).down)
}

func (w *World) hang(address string) {
	w.change(address, func(c *condition) { c.hang = true })
	w.backends[address].SetHang(true)
}
