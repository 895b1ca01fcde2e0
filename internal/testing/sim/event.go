package sim

import (
	"time"

	"google.golang.org/grpc/codes"
)

type event struct {
	name   string
	weight int // the average weight; each simulation draws its own
	do     func(*World)
}

// repairs are the events that end faults. Every simulation has all of them. They are called without
// the lock.
var repairs = []event{
	{"backend up", 14, func(w *World) { w.each("recovers", (*World).heal) }},
	{"priority up", 8, func(w *World) { w.eachOfTier("recovers", (*World).heal) }},
	{"everything up", 4, func(w *World) { w.all("recovers", (*World).heal) }},
	{"resume", 2, func(w *World) { w.all("is resumed", (*World).resume) }},
	{"source works", 4, (*World).restoreSource},
}

// disturbances are the other events. Each simulation has half of them.
var disturbances = []event{
	{"backend down", 10, func(w *World) { w.each("is killed", (*World).down) }},
	{"priority down", 6, func(w *World) { w.eachOfTier("is killed", (*World).down) }},
	{"reset", 4, func(w *World) { w.each("has its connections reset", (*World).reset) }},
	{"half open", 3, func(w *World) { w.each("drops its connections silently", (*World).halfOpen) }},
	{"go away", 4, func(w *World) { w.each("sends GOAWAY", (*World).goAway) }},
	{"blackhole", 5, func(w *World) { w.each("is cut off", (*World).blackhole) }},
	{"priority blackhole", 4, func(w *World) { w.eachOfTier("is cut off", (*World).blackhole) }},
	{"one-way blackhole", 3, func(w *World) { w.each("is cut off one way", (*World).oneWay) }},
	{"refusal", 4, func(w *World) { w.each("refuses connections", (*World).refuse) }},
	{"slow", 4, func(w *World) { w.each("is slow", (*World).slow) }},
	{"not serving", 5, func(w *World) { w.each("is NOT_SERVING", (*World).sicken) }},
	{"errors", 6, func(w *World) { w.each("answers UNAVAILABLE", (*World).err) }},
	{"priority errors", 6, func(w *World) { w.eachOfTier("answers UNAVAILABLE", (*World).err) }},
	{"errors before the end", 3, (*World).errBeforeTheEnd},
	{"hang", 2, func(w *World) { w.each("hangs", (*World).hang) }},
	{"pause", 4, func(w *World) { w.each("is paused", (*World).pause) }},
	{"priority pause", 2, func(w *World) { w.eachOfTier("is paused", (*World).pause) }},
	{"pause and resume", 3, func(w *World) { w.each("is paused for a while", (*World).pauseBriefly) }},
	{"update", 12, (*World).update},
	{"update and back", 4, (*World).updateAndBack},
	{"drained above", 4, (*World).drainedAbove},
	{"change detection", 3, (*World).detectAnew},
	{"update at timer", 3, (*World).updateOnTime},
	{"older", 2, (*World).older},
	{"source fails", 3, (*World).failSource},
	{"reopen", 2, (*World).reopen},
	{"refuse and reopen", 2, (*World).refuseAndReopen},
}

func (w *World) next() {
	sum := 0
	for _, e := range w.events {
		sum += e.weight
	}
	n := w.rand.IntN(sum)
	for _, e := range w.events {
		if n -= e.weight; n < 0 {
			w.touch()
			e.do(w)
			w.mark("event: " + e.name)
			w.touch()
			return
		}
	}
}

func (w *World) touch() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.happened, w.repeated = time.Now(), 0
}

// each applies do to a random backend. eachOfTier applies it to a whole priority, and all to all
// backends.
func (w *World) each(what string, do func(*World, string)) {
	address := w.addresses[w.rand.IntN(len(w.addresses))]
	w.Log.Event("%s %s", address, what)
	do(w, address)
}

func (w *World) eachOfTier(what string, do func(*World, string)) {
	w.mu.Lock()
	truth := w.truth
	w.mu.Unlock()
	if len(truth) == 0 {
		return
	}
	i := w.rand.IntN(len(truth))
	w.Log.Event("all of p%d %s", i, what)
	for _, address := range truth[i].Serving() {
		if address != nobody {
			do(w, address)
		}
	}
}

func (w *World) all(what string, do func(*World, string)) {
	w.Log.Event("everything %s", what)
	for _, address := range w.addresses {
		do(w, address)
	}
}

func (w *World) change(address string, change func(*condition)) {
	w.mu.Lock()
	c := w.conditions[address]
	before := c.look()
	change(c)
	c.since = time.Now()
	if w.judge != nil && c.look() != before {
		w.judge.turned(address)
	}
	w.network.SetLink(address, c.link)
	ch, concerned := w.channel, w.concerns(address)
	w.mu.Unlock()
	if concerned {
		ch.settle(false)
	}
}

func (w *World) down(address string) {
	w.change(address, func(c *condition) { c.up = false })
	w.backends[address].Down()
}

// heal marks a backend as healthy before it recovers, because clients notice the recovery at once.
func (w *World) heal(address string) {
	w.mu.Lock()
	well := w.conditions[address].works()
	w.mu.Unlock()
	if !well {
		w.change(address, func(c *condition) { c.up, c.sick, c.hang, c.answer, c.link = true, false, false, codes.OK, w.link })
	}
	b := w.backends[address]
	b.Up()
	b.SetServing(true)
	b.Answer(codes.OK)
	b.Hang(false)
}

func (w *World) reset(address string) {
	w.change(address, func(*condition) {})
	w.network.Reset(address)
}

func (w *World) halfOpen(address string) {
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

// pauseBriefly pauses a backend for up to a minute. Keepalive may or may not notice.
func (w *World) pauseBriefly(address string) {
	w.pause(address)
	w.touch()
	pass(time.Duration(w.rand.Int64N(int64(time.Minute))))
	w.Log.Event("%s is resumed", address)
	w.resume(address)
}

// sicken makes a backend report NOT_SERVING. pick_first over several endpoints ignores health
// checks.
func (w *World) sicken(address string) {
	w.change(address, func(c *condition) { c.sick = !w.settings.pickFirst })
	w.backends[address].SetServing(false)
}

func (w *World) err(address string) {
	w.change(address, func(c *condition) { c.answer = codes.Unavailable })
	w.backends[address].Answer(codes.Unavailable)
}

// errBeforeTheEnd makes all backends answer with errors, as under overload, and then kills them.
func (w *World) errBeforeTheEnd() {
	w.all("answers UNAVAILABLE", (*World).err)
	w.touch()
	pass(time.Duration(w.rand.Int64N(int64(2 * time.Minute))))
	w.all("is killed", (*World).down)
}

func (w *World) hang(address string) {
	w.change(address, func(c *condition) { c.hang = true })
	w.backends[address].Hang(true)
}
