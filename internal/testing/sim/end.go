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
	pass(time.Minute) // until hanging operations of gRPC have timed out
	if open := w.network.Open(); open > 0 {
		w.Log.Break(ruleEnd, "%d connections are still open after a minute", open)
	}
	if now := goroutines(); len(now) > w.goroutines {
		w.Log.Break(ruleEnd, "%d goroutines more than before; all goroutines:\n%s", len(now)-w.goroutines, strings.Join(now, "\n\n"))
	}
	lines := w.Log.Len()
	pass(time.Hour)
	if w.Log.Len() != lines {
		w.Log.Break(ruleEnd, "the preceding log lines were added after the channel was closed")
	}
	for _, c := range w.channels {
		c.forget()
	}
	living.CompareAndSwap(w, nil)
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
