package serial

import (
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

func goroutine() string {
	name, _, _ := strings.Cut(string(debugStack()), "[")
	return name
}

func debugStack() []byte {
	buf := make([]byte, 64)
	return buf[:runtime.Stack(buf, false)]
}

func newChain(height int) (chain []*Serializer, goroutines *[]string) {
	goroutines = new([]string)
	for i := range height {
		s := new(Serializer)
		s.SetHooks(&Hooks{Begin: func() {}, Flush: func() {
			*goroutines = append(*goroutines, goroutine())
			if i+1 < height {
				s.Relay(chain[i+1], Func(func() {}))
			}
		}})
		chain = append(chain, s)
	}
	return chain, goroutines
}

// If an event is relayed through five serializers, all of them must run their events on the same
// goroutine.
func TestRelayUsesOneGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		chain, goroutines := newChain(5)
		chain[0].Enqueue(func() {})
		synctest.Wait()
		if got := slices.Compact(slices.Clone(*goroutines)); len(*goroutines) != 5 || len(got) != 1 || got[0] == goroutine() {
			t.Errorf("the batches ran on %q, want five on one goroutine that is not %s", *goroutines, goroutine())
		}
	})
}

// Relay must not run the event on the stack of a caller of Do or Run, because the caller may hold a
// lock that the event needs.
func TestRelayDoesNotUseCallersStack(t *testing.T) {
	for name, call := range map[string]func(*Serializer){
		"Do":  func(s *Serializer) { s.Do(func() {}) },
		"Run": func(s *Serializer) { s.Run(func() {}) },
	} {
		synctest.Test(t, func(t *testing.T) {
			chain, goroutines := newChain(2)
			call(chain[0])
			synctest.Wait()
			if len(*goroutines) != 2 || (*goroutines)[0] != goroutine() || (*goroutines)[1] == goroutine() {
				t.Errorf("%s: the batches ran on %q, want the first alone on %s", name, *goroutines, goroutine())
			}
		})
	}
}

// A serializer relays an event, and then runs a slow event of its own. The relayed event must not
// wait for the slow event.
func TestRelayedEventDoesNotWaitForLaterEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var first, second Serializer
		release, hasRun := make(chan struct{}), false
		first.SetHooks(&Hooks{Begin: func() {}, Flush: func() {
			if !hasRun {
				first.Relay(&second, Func(func() { hasRun = true }))
			}
		}})
		first.Enqueue(func() { first.Enqueue(func() { <-release }) })
		synctest.Wait()
		if !hasRun {
			t.Error("the relayed event waits for a slow event below")
		}
		close(release)
		synctest.Wait()
	})
}

// If the goroutine that has relayed an event is still busy, the relayed event must run with the
// next event of the other serializer.
func TestRelayedEventRunsWithNextEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var first, second Serializer
		var got []string
		release := make(chan struct{})
		first.SetHooks(&Hooks{Begin: func() {}, Flush: func() {
			first.Relay(&second, Func(func() { got = append(got, "relayed") }))
			<-release
		}})
		first.Enqueue(func() {})
		synctest.Wait()
		second.Do(func() { got = append(got, "own") })
		if want := []string{"relayed", "own"}; !slices.Equal(got, want) {
			t.Errorf("ran %v, want %v", got, want)
		}
		close(release)
		synctest.Wait()
		if len(got) != 2 {
			t.Errorf("ran %v", got)
		}
	})
}

func TestDoAllocatesNothing(t *testing.T) {
	var s Serializer
	n := 0
	f := func() { n++ }
	if got := testing.AllocsPerRun(100, func() { s.Do(f); s.Run(f) }); got != 0 {
		t.Errorf("%v allocations", got)
	}
}
