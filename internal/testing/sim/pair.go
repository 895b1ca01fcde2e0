package sim

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

type pair struct {
	faults              []pairFault
	callInterval        time.Duration
	deadline            time.Duration
	latency             time.Duration
	rareCalls, streams  bool
	streamsHaveDeadline bool
	cancelMode          int
	running             *sync.WaitGroup
	done                chan struct{}
}

// choosePair turns on outlier detection, as the channel wouldn't notice failing calls without it.
func (w *World) choosePair(name string) {
	p := &pair{faults: faultsOf(name)}
	has := p.has
	w.pair, w.judge = p, newJudge(w)
	w.settings.detects, w.settings.pickFirst = true, false
	w.settings.overflow = true // otherwise the last priority isn't used if its endpoints are ejected
	w.link = Link{Delay: []time.Duration{0, time.Millisecond, 50 * time.Millisecond, 200 * time.Millisecond}[w.rand.IntN(4)]}
	p.rareCalls, p.streams = has("seldom"), has("streams")
	p.callInterval = []time.Duration{1000, 2000, 5000, 8000}[w.rand.IntN(4)] * time.Millisecond
	if p.streams {
		p.callInterval *= 3
	}
	if p.rareCalls {
		p.callInterval = time.Duration(11+w.rand.IntN(70)) * time.Second
	}
	w.callEach = p.callInterval * 3 / 2
	if has("resets") && !p.streams {
		if p.latency = 1500 * time.Millisecond; p.rareCalls {
			p.latency = 6 * p.callInterval
		}
	}
	p.streamsHaveDeadline = p.streams && (has("hang") || w.rand.IntN(2) == 0)
	p.cancelMode = w.rand.IntN(4)
	p.deadline = []time.Duration{2, 5, 20}[w.rand.IntN(3)]*time.Second + p.latency + connectAndCall*w.link.Delay
	if !w.hitsEndpoints(p) {
		candidates := []int{0, 1, 2, 3, 4}
		p.faults = append(p.faults, pairFaults()[candidates[w.rand.IntN(len(candidates))]])
	}
	for _, address := range w.addresses {
		w.backends[address].SetLatency(p.latency)
		w.conditions[address].link = w.link
		w.network.SetLink(address, w.link)
	}
	w.Log.Event("pair %s: a call each %v, deadline %v, answers take %v, delay %v", name, p.callInterval, p.deadline, p.latency, w.link.Delay)
}

func (p *pair) has(name string) bool {
	return slices.ContainsFunc(p.faults, func(f pairFault) bool { return f.name == name })
}

func (w *World) hitsEndpoints(p *pair) bool {
	return slices.ContainsFunc(p.faults, pairFault.affectsEndpoints)
}

// runPair runs one episode after another. In between, we check which priority gets the calls.
func (w *World) runPair(length time.Duration) {
	end := time.Now().Add(length)
	sleep(10 * time.Second)
	for n := 0; time.Now().Before(end) && len(w.Log.Broken()) == 0; n++ {
		w.episode()
		if n%3 == 0 {
			w.checkHealed()
		}
	}
}

type activeFault struct {
	pairFault
	endpoints []string
	next      time.Time
	interval  time.Duration
}

func (w *World) beginFaults() (all []*activeFault) {
	first := w.drawTier(w.rand, false)
	for _, i := range w.rand.Perm(len(w.pair.faults)) {
		f := w.pair.faults[i]
		tier := first
		if w.rand.IntN(2) == 0 || f.name == "some" || f.name == "below" {
			if t := w.drawTier(w.rand, f.name == "some" || f.name == "below"); t != nil {
				tier = t
			}
		}
		s := &activeFault{pairFault: f, endpoints: tier}
		if f.repeat != nil {
			s.interval = f.interval[0] + time.Duration(w.rand.Int64N(int64(f.interval[1]-f.interval[0])))
			s.next = time.Now().Add(s.interval)
		}
		w.Log.Event("fault %s at %v", f.name, tier)
		if f.begin != nil && len(tier) > 0 {
			f.begin(w, slices.Clone(tier))
		}
		all = append(all, s)
		if w.rand.IntN(2) == 0 {
			w.duringBurst(func() {})
		}
		sleep(time.Duration(w.rand.IntN(3)/2) * time.Duration(w.rand.Int64N(int64(20*w.pair.callInterval+time.Minute))))
	}
	return all
}

func (w *World) episode() {
	all := w.beginFaults()
	w.sustain(all)
	endsConnections := slices.ContainsFunc(all, func(s *activeFault) bool { return s.name == "ends" || s.name == "resets" })
	if !endsConnections { // otherwise the correct priority may have just lost its connections
		w.checkInUse()
	}
	w.Log.Event("the faults end")
	w.restoreSource()
	for _, i := range w.rand.Perm(len(w.addresses)) {
		w.heal(w.addresses[i])
		sleep(time.Duration(w.rand.IntN(4)/3) * time.Duration(w.rand.IntN(20)) * time.Second)
	}
}

func (w *World) sustain(all []*activeFault) {
	w.mu.Lock()
	longest := 2*w.settings.maxFailoverTime(3) + 8*detectionInterval
	w.mu.Unlock()
	begin, calls := time.Now(), w.callsMade()
	length := longest + time.Duration(w.rand.Int64N(int64(15*time.Minute)))
	wantCalls := 130 + w.rand.IntN(100)
	for time.Since(begin) < length || w.pair.rareCalls && w.callsMade()-calls < wantCalls {
		next := time.Now().Add(time.Minute)
		for _, s := range all {
			if s.repeat != nil && len(s.endpoints) > 0 && s.next.Before(next) {
				next = s.next
			}
		}
		sleep(time.Until(next))
		for _, s := range all {
			if s.repeat != nil && !time.Now().Before(s.next) && len(s.endpoints) > 0 {
				s.repeat(w, slices.Clone(s.endpoints))
				s.next = time.Now().Add(s.interval)
			}
		}
	}
}

func (w *World) callsMade() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.judge.calls
}

func (w *World) duringBurst(f func()) {
	// In a third of the cases, and always if the client makes rare calls, we don't make any calls
	// ourselves.
	makeCalls := func(n int) {
		for range n {
			w.pair.running.Go(func() { w.pairCall(true) })
			sleep(50 * time.Millisecond)
		}
	}
	if w.pair.rareCalls || w.rand.IntN(3) == 0 {
		f()
		return
	}
	n := 40
	if w.pair.streams {
		n = 10
	}
	makeCalls(n)
	f()
	makeCalls(n)
}

func (w *World) checkHealed() {
	for begin := time.Now(); !w.isSettled(); sleep(w.pair.callInterval) {
		if time.Since(begin) > 100*maxUnrest {
			w.Log.Break(ruleContent, "the world does not settle")
			return
		}
	}
	w.mu.Lock()
	w.judge.sentTo = nil
	w.mu.Unlock()
	for made := w.callsMade(); w.callsMade() < made+12; {
		sleep(w.pair.callInterval)
	}
	w.checkInUse()
}

func (w *World) isSettled() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	j := w.judge
	wait := w.settleTime() + w.maxRestTime() + w.settings.maxConnectTime() + w.pair.deadline
	return time.Since(j.lastChange.time) > wait && j.calls-j.lastChange.calls > 11*(len(j.byEndpoint)+2)
}

// checkInUse does nothing while the channel may still be reacting to a change.
func (w *World) checkInUse() {
	if !w.isSettled() || w.sharesVary() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	correct := w.correctPriorities(w.knownTruth)
	keepsConnection := func(address string) bool { return !w.reachable(address) && !w.network.Connected(address).IsZero() }
	isCutShort := func(address string) bool { return w.judge.cutShort(w.conditions[address], time.Now()) }
	if len(correct) == 0 || slices.ContainsFunc(w.knownTruth.serving(), keepsConnection) || slices.ContainsFunc(w.knownTruth.serving(), isCutShort) {
		return // either an unreachable endpoint still has a connection, or an endpoint's connections keep being reset
	}
	w.calls.Checks++
	var endpoints []string
	for _, i := range correct {
		endpoints = append(endpoints, w.knownTruth[i].Serving()...)
	}
	j := w.judge
	for _, to := range j.sentTo[max(0, len(j.sentTo)-12):] {
		if !slices.Contains(endpoints, to) {
			w.Log.Break(rulePriority, "%v and %d calls after the last event a call went to %s, want one of p%d", time.Since(j.lastChange.time), j.calls-j.lastChange.calls, to, correct)
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
		case <-time.After(w.pair.callInterval/2 + time.Duration(r.Int64N(int64(w.pair.callInterval)))):
			waitForReady := r.IntN(2) == 0
			w.pair.running.Go(func() { w.pairCall(waitForReady) })
		}
	}
}
