package sim

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// pair configures a simulation in which two faults occur together.
type pair struct {
	faults          []mishap
	each            time.Duration // between two calls
	deadline        time.Duration
	takes           time.Duration
	seldom, streams bool
	limited         bool // streams have a deadline
	stay            int  // decides when the client cancels a stream
	calls           *sync.WaitGroup
	done            chan struct{}
}

// choosePair sets two faults that occur together. It turns outlier detection on, because without it
// the channel does not notice failing calls.
func (w *World) choosePair(name string) {
	p := &pair{faults: faultsOf(name)}
	has := p.has
	w.pair, w.judge = p, newJudge(w)
	w.settings.detects, w.settings.pickFirst = "true", false
	if has("below") && w.settings.minReady == 0 {
		w.settings.minReady = minReadies[w.rand.IntN(len(minReadies))]
		w.settings.recovery = w.settings.minReady
	}
	w.link = Link{Delay: []time.Duration{0, time.Millisecond, 50 * time.Millisecond, 200 * time.Millisecond}[w.rand.IntN(4)]}
	p.seldom, p.streams = has("seldom"), has("streams")
	p.each = []time.Duration{1000, 2000, 5000, 8000}[w.rand.IntN(4)] * time.Millisecond
	if p.streams {
		p.each *= 3
	}
	if p.seldom {
		p.each = time.Duration(11+w.rand.IntN(70)) * time.Second
	}
	if has("resets") && !p.streams {
		if p.takes = 1500 * time.Millisecond; p.seldom {
			p.takes = 6 * p.each
		}
	}
	p.limited = p.streams && (has("hang") || w.rand.IntN(2) == 0)
	p.stay = w.rand.IntN(4)
	p.deadline = []time.Duration{2, 5, 20}[w.rand.IntN(3)]*time.Second + p.takes + 12*w.link.Delay // time for a connection and a call
	if !w.hitBy(p) {
		hitting := []int{0, 1, 2, 3, 4}
		p.faults = append(p.faults, twelve()[hitting[w.rand.IntN(len(hitting))]])
	}
	for _, address := range w.addresses {
		w.backends[address].Take(p.takes)
		w.conditions[address].link = w.link
		w.network.SetLink(address, w.link)
	}
	w.Log.Event("pair %s: a call each %v, deadline %v, answers take %v, delay %v", name, p.each, p.deadline, p.takes, w.link.Delay)
}

func (p *pair) has(name string) bool {
	return slices.ContainsFunc(p.faults, func(f mishap) bool { return f.name == name })
}

func (w *World) hitBy(p *pair) bool { return slices.ContainsFunc(p.faults, mishap.hits) }

// livePair makes both faults occur together, again and again. In between, it checks which priority
// gets the calls.
func (w *World) livePair(length time.Duration) {
	end := time.Now().Add(length)
	pass(10 * time.Second)
	for n := 0; time.Now().Before(end) && len(w.Log.Broken()) == 0; n++ {
		w.episode()
		if n%3 == 0 {
			w.checkHealed()
		}
	}
}

type struck struct {
	mishap
	tier []string
	next time.Time
	each time.Duration
}

func (w *World) strikeAll() (all []*struck) {
	first := w.drawTier(w.rand, false)
	for _, i := range w.rand.Perm(len(w.pair.faults)) {
		f := w.pair.faults[i]
		tier := first
		if w.rand.IntN(2) == 0 || f.name == "some" || f.name == "below" {
			if t := w.drawTier(w.rand, f.name == "some" || f.name == "below"); t != nil {
				tier = t
			}
		}
		s := &struck{mishap: f, tier: tier}
		if f.again != nil {
			s.each = f.each[0] + time.Duration(w.rand.Int64N(int64(f.each[1]-f.each[0])))
			s.next = time.Now().Add(s.each)
		}
		w.Log.Event("fault %s at %v", f.name, tier)
		if f.strike != nil && len(tier) > 0 {
			f.strike(w, slices.Clone(tier))
		}
		all = append(all, s)
		if w.rand.IntN(2) == 0 {
			w.inBurst(func() {})
		}
		pass(time.Duration(w.rand.IntN(3)/2) * time.Duration(w.rand.Int64N(int64(20*w.pair.each+time.Minute))))
	}
	return all
}

// episode begins the faults of a pair, lets them last together, and ends them.
func (w *World) episode() {
	all := w.strikeAll()
	w.sustain(all)
	w.markPair(all)
	loses := slices.ContainsFunc(all, func(s *struck) bool { return s.name == "ends" || s.name == "resets" })
	if !loses || !w.settings.fast && w.settings.failback == 0 { // otherwise a priority that has just lost its connections may get no calls
		w.checkInUse()
	}
	w.Log.Event("the faults end")
	w.restoreSource()
	for _, i := range w.rand.Perm(len(w.addresses)) {
		w.heal(w.addresses[i])
		pass(time.Duration(w.rand.IntN(4)/3) * time.Duration(w.rand.IntN(20)) * time.Second)
	}
}

// markPair records a pair of faults. A fault without endpoints does not count.
func (w *World) markPair(all []*struck) {
	var names []string
	for _, s := range all {
		if s.strike == nil && s.again == nil || len(s.tier) > 0 {
			names = append(names, s.name)
		}
	}
	for i, a := range names {
		for _, b := range names[i+1:] {
			w.mark(pairMark([]string{a, b}))
		}
	}
}

// sustain waits longer than the effects of the faults may take.
func (w *World) sustain(all []*struck) {
	w.mu.Lock()
	longest := 2*w.settings.patience(3) + 8*byTarget.interval
	w.mu.Unlock()
	begin, calls := time.Now(), w.madeNow()
	length := longest + time.Duration(w.rand.Int64N(int64(15*time.Minute)))
	most := 130 + w.rand.IntN(100)
	for time.Since(begin) < length || w.pair.seldom && w.madeNow()-calls < most {
		next := time.Now().Add(time.Minute)
		for _, s := range all {
			if s.again != nil && len(s.tier) > 0 && s.next.Before(next) {
				next = s.next
			}
		}
		pass(time.Until(next))
		for _, s := range all {
			if s.again != nil && !time.Now().Before(s.next) && len(s.tier) > 0 {
				s.again(w, slices.Clone(s.tier))
				s.next = time.Now().Add(s.each)
			}
		}
	}
}

func (w *World) madeNow() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.judge.made
}

// inBurst calls do while many calls are made. It makes no calls if the client makes few, and
// sometimes otherwise.
func (w *World) inBurst(do func()) {
	calls := func(n int) {
		for range n {
			w.pair.calls.Go(func() { w.pairCall(true) })
			pass(50 * time.Millisecond)
		}
	}
	if w.pair.seldom || w.rand.IntN(3) == 0 {
		do()
		return
	}
	n := 40
	if w.pair.streams {
		n = 10
	}
	calls(n)
	do()
	calls(n)
}

// checkHealed waits after the last fault until nothing changes any more, and then checks which
// priority gets the calls.
func (w *World) checkHealed() {
	for begin := time.Now(); !w.rested(); pass(w.pair.each) {
		if time.Since(begin) > 100*longestUnrest {
			w.Log.Break(ruleContent, "the world does not settle")
			return
		}
	}
	w.mu.Lock()
	w.judge.to = nil
	w.mu.Unlock()
	for made := w.madeNow(); w.madeNow() < made+12; {
		pass(w.pair.each)
	}
	w.checkInUse()
}

// rested reports whether there was enough time and enough calls since the last change.
func (w *World) rested() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	j := w.judge
	wait := w.settleTime() + w.rest() + w.settings.longEnough() + w.pair.deadline
	return time.Since(j.changed.at) > wait && j.made-j.changed.made > 11*(len(j.of)+2)
}

// checkInUse checks where the last calls went, if nothing changes any more.
func (w *World) checkInUse() {
	if !w.rested() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	right := w.right(w.known)
	kept := func(address string) bool { return !w.connects(address) && !w.network.Connected(address).IsZero() }
	cut := func(address string) bool { return w.judge.cutShort(w.conditions[address], time.Now()) }
	if len(right) == 0 || slices.ContainsFunc(w.known.serving(), kept) || slices.ContainsFunc(w.known.serving(), cut) {
		return // an old connection is still used, or an endpoint never answers because its connections are always reset
	}
	w.calls.Checks++
	var endpoints []string
	for _, i := range right {
		endpoints = append(endpoints, w.known[i].Serving()...)
	}
	j := w.judge
	for _, to := range j.to[max(0, len(j.to)-12):] {
		if !slices.Contains(endpoints, to) {
			w.Log.Break(rulePriority, "%v and %d calls after the last event a call went to %s, want one of p%d", time.Since(j.changed.at), j.made-j.changed.made, to, right)
			return
		}
	}
}

func (w *World) pairTraffic(seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // draws the load
	for {
		select {
		case <-w.pair.done:
			return
		case <-time.After(w.pair.each/2 + time.Duration(r.Int64N(int64(w.pair.each)))):
			wait := r.IntN(2) == 0
			w.pair.calls.Go(func() { w.pairCall(wait) })
		}
	}
}
