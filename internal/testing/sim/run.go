// Package sim is a simulator for tests. It runs a channel with its source, its backends and the
// network between them under testing/synctest. A seed determines the faults, and rules check what
// happens.
//
// The expectations follow from the faults and from a model of gRFC A56, and never from a decision
// of the library.
package sim

import (
	"sync"
	"time"
)

type Config struct {
	Length    time.Duration // simulated time
	EventEach time.Duration // on average, except while nothing may happen
	CallEach  time.Duration
	Kind      string // the kind of source; "" for a random one
	Dir       string // the directory for the files of sources
	PickFirst bool
	Pair      string // two faults such as "kill+hang"; "" for any faults
	Marks     *Marks // counts what the world reaches; may be nil
}

// Run runs a simulation, and returns its log and the counts of its calls. It must be called in a
// synctest bubble, and by one goroutine at a time.
func Run(seed uint64, config Config) (*Log, Calls, error) {
	w, err := newWorld(seed, config)
	if err != nil {
		return w.Log, w.calls, err
	}
	done := make(chan struct{})
	var calls sync.WaitGroup
	if w.pair != nil {
		w.pair.calls, w.pair.done = &calls, done
		calls.Go(func() { w.pairTraffic(seed) })
	} else {
		calls.Go(func() { w.traffic(config.CallEach, done, &calls) })
	}
	calls.Go(func() { w.watch(done) })
	if w.pair != nil {
		w.livePair(config.Length)
	} else {
		w.live(config)
	}
	w.conclude()
	close(done)
	calls.Wait()
	w.end()
	w.calls.Failovers += w.channel.failovers
	w.Log.Event("%v", w.calls)
	if config.Marks != nil {
		config.Marks.add(w.marked.all())
	}
	return w.Log, w.calls, nil
}

func (w *World) live(config Config) {
	end := time.Now().Add(config.Length)
	for time.Now().Before(end) {
		// Some pauses are short, and others are long enough for timers to fire.
		pause := time.Duration(w.rand.ExpFloat64() * float64(config.EventEach))
		if w.rand.IntN(3) == 0 {
			pause = time.Duration(w.rand.IntN(2000)) * time.Millisecond
		}
		pass(pause)
		w.next()
		if w.rand.IntN(3) == 0 {
			w.quiet()
		}
	}
}

// pass lets simulated time pass.
func pass(d time.Duration) { <-time.After(d) }

// unsettled reports whether the last event may still have effects. An update of the source may
// reach the channel much later.
func (w *World) unsettled() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	wait := w.settleTime() + w.rest() + time.Second
	return time.Since(w.happened) < wait || time.Since(w.knownAt) < wait || time.Since(w.openedAt) < wait
}

// longestUnrest is the longest time that sources and timers may be busy after the last event.
const longestUnrest = 2 * time.Hour

// quiet waits until nothing changes any more, and then runs the checks.
func (w *World) quiet() {
	for begin := time.Now(); w.unsettled(); pass(5 * time.Second) {
		if time.Since(begin) > longestUnrest {
			w.Log.Break(ruleContent, "the channel still receives new updates %v after the last event", longestUnrest)
			return
		}
	}
	w.Log.Event("quiet")
	calm := w.checkQuiet()
	w.mu.Lock()
	sure := calm && (!w.detects() || w.lowest >= 0)
	w.mu.Unlock()
	w.channel.settle(sure)
}

func (w *World) traffic(each time.Duration, done <-chan struct{}, calls *sync.WaitGroup) {
	ticker := time.NewTicker(each)
	defer ticker.Stop()
	for n := 0; ; n++ {
		select {
		case <-done:
			return
		case <-ticker.C:
			calls.Go(func() { w.call(n%8 != 7) })
		}
	}
}

// watch checks every second the rules that must always hold.
func (w *World) watch(done <-chan struct{}) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return
		case <-ticker.C:
			w.channelNow().check()
			w.checkUpdate()
			w.checkEjections()
			w.lookAround()
		}
	}
}
