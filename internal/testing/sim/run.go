// Package sim is a simulator for tests. It runs a channel with its source, its backends and the
// network between them under testing/synctest. The faults come from a seed, and rules check how the
// channel reacts.
//
// What the rules expect is derived from the faults and from a model of gRFC A56, never from what
// the library has decided.
package sim

import (
	"sync"
	"time"
)

type Config struct {
	Length    time.Duration // simulated time
	EventEach time.Duration // the average time between two events, without the quiet periods
	Kind      string        // the kind of source; "" for a random one
	Dir       string        // the directory for the files of sources
	PickFirst bool
	Pair      string // two faults such as "kill+hang"; "" for any faults
	Load      bool   // the simulation ends with a load; otherwise, some do
}

// Run runs a simulation and returns its log and call counts. It must be called in a synctest
// bubble, and not concurrently.
func Run(seed uint64, config Config) (*Log, Calls, error) {
	w, err := newWorld(seed, config)
	if err != nil {
		return w.Log, w.calls, err
	}
	done := make(chan struct{})
	var calls sync.WaitGroup
	if w.pair != nil {
		w.pair.running, w.pair.done = &calls, done
		calls.Go(func() { w.pairTraffic(seed) })
	} else {
		calls.Go(func() { w.traffic(done, &calls) })
	}
	calls.Go(func() { w.watch(done) })
	if w.pair != nil {
		w.runPair(config.Length)
	} else {
		w.runEvents(config)
	}
	w.conclude(config.Load)
	close(done)
	calls.Wait()
	w.end()
	w.calls.Failovers += int(w.channel.failovers.Load())
	w.Log.Event("%v", w.calls)
	return w.Log, w.calls, nil
}

func (w *World) runEvents(config Config) {
	end := time.Now().Add(config.Length)
	for time.Now().Before(end) {
		// Some pauses are short, and some are long enough for timers to fire.
		pause := time.Duration(w.rand.ExpFloat64() * float64(config.EventEach))
		if w.rand.IntN(3) == 0 {
			pause = time.Duration(w.rand.IntN(2000)) * time.Millisecond
		}
		sleep(pause)
		w.runRandomEvent()
		if w.rand.IntN(3) == 0 {
			w.checkWhenQuiet()
		}
	}
}

func sleep(d time.Duration) { <-time.After(d) }

// unsettled is true if the channel may still be reacting to the last event, to its last update
// (which can come much later than the event), or to its opening.
func (w *World) unsettled() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	settleTime := w.settleTime() + w.maxRestTime() + time.Second
	return time.Since(w.lastEvent) < settleTime || time.Since(w.updatedAt) < settleTime || time.Since(w.openedAt) < settleTime
}

const maxUnrest = 2 * time.Hour

func (w *World) checkWhenQuiet() {
	for begin := time.Now(); w.unsettled(); sleep(5 * time.Second) {
		if time.Since(begin) > maxUnrest {
			w.Log.Break(ruleContent, "the channel still receives new updates %v after the last event", maxUnrest)
			return
		}
	}
	w.Log.Event("quiet")
	undisturbed := w.checkQuiet()
	w.mu.Lock()
	certain := undisturbed && (!w.settings.detects || w.priorityInUse >= 0)
	w.mu.Unlock()
	w.channel.setSettled(certain)
}

func (w *World) traffic(done <-chan struct{}, calls *sync.WaitGroup) {
	ticker := time.NewTicker(w.callEach)
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

func (w *World) watch(done <-chan struct{}) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return
		case <-ticker.C:
			w.currentChannel().check()
			w.checkUpdate()
		}
	}
}
