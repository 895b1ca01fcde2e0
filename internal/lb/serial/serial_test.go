package serial

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestDoKeepsTheOrder(t *testing.T) {
	var s Serializer
	var got []int
	s.Do(func() {
		got = append(got, 1)
		s.Enqueue(func() { got = append(got, 3) })
		got = append(got, 2)
	})
	s.Do(func() { got = append(got, 4) })
	if want := []int{1, 2, 3, 4}; !slices.Equal(got, want) {
		t.Errorf("events ran as %v, want %v", got, want)
	}
}

// If a child calls Enqueue while it holds a lock that the event needs, this must not deadlock.
func TestEnqueueDoesNotUseCallersStack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Serializer
		var child sync.Mutex
		called := false
		child.Lock()
		s.Enqueue(func() {
			child.Lock()
			called = true
			child.Unlock()
		})
		child.Unlock()
		synctest.Wait()
		if !called {
			t.Error("the event did not run")
		}
	})
}

func TestDoWaitsForRunningEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Serializer
		release := make(chan struct{})
		var got []string
		go s.Do(func() { <-release; got = append(got, "first") })
		synctest.Wait()
		done := make(chan struct{})
		go func() {
			s.Do(func() { got = append(got, "second") })
			close(done)
		}()
		synctest.Wait()
		if len(got) != 0 {
			t.Fatalf("ran %v while an event was running", got)
		}
		close(release)
		<-done
		if want := []string{"first", "second"}; !slices.Equal(got, want) {
			t.Errorf("ran %v, want %v", got, want)
		}
	})
}

// Do must return even if each event queues another event.
func TestDoReturnsWhileEventsAreQueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Serializer
		stop := false
		var requeue func()
		requeue = func() {
			if !stop {
				s.Enqueue(requeue)
			}
		}
		s.Do(requeue)
		s.Do(func() { stop = true })
	})
}

func TestFlushRunsOncePerBatch(t *testing.T) {
	var s Serializer
	n, flushed := 0, []int{}
	s.SetHooks(&Hooks{Begin: func() {}, Flush: func() { flushed = append(flushed, n) }})
	s.Do(func() {
		for range 3 {
			s.Enqueue(func() { n++ })
		}
	})
	s.Do(func() {})
	if want := []int{0, 3}; !slices.Equal(flushed, want) {
		t.Errorf("flushed at %v, want %v", flushed, want)
	}
}

func TestManyGoroutines(t *testing.T) {
	var s Serializer
	var wg sync.WaitGroup
	n := 0
	for range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range 1000 {
				s.Enqueue(func() { n++ })
				s.Do(func() { n++ })
			}
		}()
	}
	wg.Wait()
	s.Do(func() {})
	if n != 16000 {
		t.Errorf("ran %d events, want 16000", n)
	}
}

func TestNestedRunRunsLater(t *testing.T) {
	var s Serializer
	var got []int
	s.Run(func() {
		s.Run(func() { got = append(got, 2) })
		got = append(got, 1)
	})
	if want := []int{1, 2}; !slices.Equal(got, want) {
		t.Errorf("events ran as %v, want %v", got, want)
	}
}

func TestSlotKeepsTheLastEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Serializer
		var slot, other Slot
		var got []int
		release := make(chan struct{})
		s.Enqueue(func() { <-release })
		for i := range 1000 {
			slot.Enqueue(&s, func() { got = append(got, i) })
			other.Enqueue(&s, func() { got = append(got, -i) })
		}
		close(release)
		synctest.Wait()
		slot.Enqueue(&s, func() { got = append(got, 1000) })
		synctest.Wait()
		if want := []int{999, -999, 1000}; !slices.Equal(got, want) {
			t.Errorf("events ran as %v, want %v", got, want)
		}
	})
}

// Background must not be 0 before all of these events have run: queued events, the events that they
// queue in other serializers, and the events that Do leaves to a goroutine.
func TestBackgroundCountsAllEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := Background()
		var first, second Serializer
		release := make(chan struct{})
		first.Enqueue(func() {
			<-release
			second.Enqueue(func() { <-release })
		})
		synctest.Wait()
		if got := Background() - before; got != 1 {
			t.Errorf("%d goroutines run events while one waits", got)
		}
		release <- struct{}{}
		synctest.Wait()
		if got := Background() - before; got != 1 {
			t.Errorf("%d goroutines run events while the one above waits", got)
		}
		close(release)
		synctest.Wait()
		first.Do(func() { first.Enqueue(func() {}) })
		synctest.Wait()
		if got := Background() - before; got != 0 {
			t.Errorf("%d goroutines run events at the end", got)
		}
	})
}

// Background must count the goroutine of a timer that has fired. This goroutine also runs events
// that are queued in the meantime.
func TestBackgroundCountsTimers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := Background()
		var s Serializer
		var timer Timer
		release := make(chan struct{})
		s.Do(func() { timer.Start(&s, time.Second, func() { <-release }) })
		time.Sleep(time.Second)
		synctest.Wait()
		if got := Background() - before; got != 1 {
			t.Errorf("%d goroutines run events while a timer's event does", got)
		}
		s.Enqueue(func() { <-release })
		release <- struct{}{}
		synctest.Wait()
		if got := Background() - before; got != 1 {
			t.Errorf("%d goroutines run events while one waits that was queued meanwhile", got)
		}
		close(release)
		synctest.Wait()
		if got := Background() - before; got != 0 {
			t.Errorf("%d goroutines run events at the end", got)
		}
	})
}
