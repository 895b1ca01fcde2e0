package sim

import (
	"runtime"
	"strings"
	"time"
)

// end closes the channel, and sees to it that nothing is left: no connection, no
// goroutine, and nothing that still happens by itself.
func (w *World) end() {
	_ = w.cc.Close()
	w.source.Close()
	for _, address := range w.addresses {
		w.network.SetLink(address, Link{})
		w.backends[address].Down()
	}
	pass(time.Minute) // gRPC's own ends: what hangs is given up
	if open := w.network.Open(); open > 0 {
		w.Log.Break(ruleEnd, "%d connections are open a minute later", open)
	}
	if now := goroutines(); len(now) > w.goroutines {
		w.Log.Break(ruleEnd, "%d goroutines more than before; those of now:\n%s", len(now)-w.goroutines, strings.Join(now, "\n\n"))
	}
	lines := w.Log.Len()
	pass(time.Hour)
	if w.Log.Len() != lines {
		w.Log.Break(ruleEnd, "something happens by itself after that: the lines above")
	}
	for _, c := range w.channels {
		c.forget()
	}
	living.CompareAndSwap(w, nil)
}

// goroutines returns the stacks of those in a bubble.
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
