package sim

import (
	"runtime"
	"strings"
	"time"
)

func (w *World) end() {
	w.mu.Lock()
	cc := w.cc
	w.cc = nil
	w.mu.Unlock()
	_ = cc.Close()
	w.source.Close()
	for _, address := range w.addresses {
		w.network.SetLink(address, Link{})
		w.backends[address].Down()
	}
	sleep(time.Minute) // gives hanging operations of gRPC time to time out
	if open := w.network.Open(); open > 0 {
		w.Log.Break(ruleEnd, "%d connections are still open after a minute", open)
	}
	if running := goroutines(); len(running) > w.goroutines {
		w.Log.Break(ruleEnd, "%d goroutines more than before; all goroutines:\n%s", len(running)-w.goroutines, strings.Join(running, "\n\n"))
	}
	lines := w.Log.Len()
	sleep(time.Hour)
	if w.Log.Len() != lines {
		w.Log.Break(ruleEnd, "the preceding log lines were added after the channel was closed")
	}
	for _, c := range w.channels {
		c.unregister()
	}
	currentWorld.CompareAndSwap(w, nil)
}

func goroutines() []string {
	stacks := make([]byte, 8<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	var all []string
	for stack := range strings.SplitSeq(string(stacks), "\n\n") {
		if first, _, _ := strings.Cut(stack, "\n"); strings.Contains(first, "synctest bubble") {
			all = append(all, stack)
		}
	}
	return all
}
