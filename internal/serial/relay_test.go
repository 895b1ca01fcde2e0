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

func tower(height int) (floors []*Serializer, ran *[]string) {
	ran = new([]string)
	for i := range height {
		s := new(Serializer)
		s.SetHooks(&Hooks{Begin: func() {}, Flush: func() {
			*ran = append(*ran, goroutine())
			if i+1 < height {
				s.Relay(floors[i+1], Func(func() {}))
			}
		}})
		floors = append(floors, s)
	}
	return floors, ran
}

// An event is relayed from one serializer to the next, through five of them. All must run their
// events on the same goroutine.
func TestWhatIsRelayedRunsOnTheGoroutineThatIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		floors, ran := tower(5)
		floors[0].Enqueue(func() {})
		synctest.Wait()
		if got := slices.Compact(slices.Clone(*ran)); len(*ran) != 5 || len(got) != 1 || got[0] == goroutine() {
			t.Errorf("the batches ran on %q, want five on one goroutine that is not %s", *ran, goroutine())
		}
	})
}

// Relay must not run the event on a caller's stack, because the caller may hold a lock that the
// event needs.
func TestNothingIsRelayedOnACallersStack(t *testing.T) {
	for name, call := range map[string]func(*Serializer){
		"Do":  func(s *Serializer) { s.Do(func() {}) },
		"Run": func(s *Serializer) { s.Run(func() {}) },
	} {
		synctest.Test(t, func(t *testing.T) {
			floors, ran := tower(2)
			call(floors[0])
			synctest.Wait()
			if len(*ran) != 2 || (*ran)[0] != goroutine() || (*ran)[1] == goroutine() {
				t.Errorf("%s: the batches ran on %q, want the first alone on %s", name, *ran, goroutine())
			}
		})
	}
}

// The serializer below relays an event, and then runs a slow event of its own. The relayed event
// must not wait for the slow one.
func TestWhatIsRelayedDoesNotWaitForMoreEventsBelow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var below, above Serializer
		release, arrived := make(chan struct{}), false
		below.SetHooks(&Hooks{Begin: func() {}, Flush: func() {
			if !arrived {
				below.Relay(&above, Func(func() { arrived = true }))
			}
		}})
		below.Enqueue(func() { below.Enqueue(func() { <-release }) })
		synctest.Wait()
		if !arrived {
			t.Error("the relayed event waits for a slow event below")
		}
		close(release)
		synctest.Wait()
	})
}

// The goroutine of the serializer below is still busy after it has relayed an event. The event must
// then run with the next event of the serializer above.
func TestWhatIsRelayedRunsWithWhatIsAboveAnyway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var below, above Serializer
		var got []string
		release := make(chan struct{})
		below.SetHooks(&Hooks{Begin: func() {}, Flush: func() {
			below.Relay(&above, Func(func() { got = append(got, "relayed") }))
			<-release
		}})
		below.Enqueue(func() {})
		synctest.Wait()
		above.Do(func() { got = append(got, "own") })
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
