package live

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func init() { Enable() }

func discardAll() {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	registry.channels, registry.rootless = make(map[*Channel]struct{}), nil
}

func targets() []string {
	var names []string
	for _, v := range Channels() {
		names = append(names, v.Target)
	}
	return names
}

func expectTargets(t *testing.T, want ...string) {
	t.Helper()
	if got := targets(); !slices.Equal(got, want) {
		t.Errorf("recorded targets: %q, want %q", got, want)
	}
}

// A channel must be recorded while it has sources or a root policy, and for up to an hour while
// it is idle.
func TestChannelIsRecordedUntilGone(t *testing.T) {
	discardAll()
	synctest.Test(t, func(t *testing.T) {
		noSources := func() []Source { return nil }
		owner := new(int)
		a := New("a", noSources)
		expectTargets(t, "a")
		a.Attach("root", owner)
		a.Stop()
		expectTargets(t, "a")
		a.Retire("tree")
		if v := Channels()[0]; v.Tree != "tree" || v.Root != nil || v.Closed.IsZero() {
			t.Errorf("a closed channel is %+v", v)
		}
		b := New("b", noSources)
		expectTargets(t, "a", "b")
		b.Attach("root", owner)
		expectTargets(t, "b")
		b.Stop()
		b.Retire("tree")
		time.Sleep(time.Hour + time.Second)
		expectTargets(t)
		New("c", noSources).Stop()
		expectTargets(t)
	})
}

func TestIdleChannelsAreLimited(t *testing.T) {
	discardAll()
	synctest.Test(t, func(t *testing.T) {
		old := New("old", nil)
		old.Attach("root", new(int))
		for i := range 300 {
			c := New(fmt.Sprint(i), nil)
			c.Attach("root", new(int))
			c.Retire("tree")
			time.Sleep(time.Second)
		}
		old.Retire("tree")
		if got := targets(); len(got) != maxIdle || got[0] != "old" || got[1] != "201" || got[len(got)-1] != "299" {
			t.Errorf("recorded targets: %q, want the last %d", got, maxIdle)
		}
		time.Sleep(idleRetention + time.Second)
		expectTargets(t)
	})
}

func TestLastEventsAreKept(t *testing.T) {
	c := New("c", nil)
	c.Attach("root", nil)
	for i := range 250 {
		c.Note(fmt.Sprint(i))
	}
	events := Channels()[0].Events
	if len(events) != maxEvents || events[0].Text != "150" || events[99].Text != "249" {
		t.Errorf("%d events are kept, from %v to %v", len(events), events[0], events[len(events)-1])
	}
	c.Retire(nil)
	var disabled *Channel
	disabled.Note("x")
	disabled.Attach(nil, nil)
	disabled.Retire(nil)
	disabled.Stop()
}

func TestStopDoesNotChangeEarlierView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sources := []Source{{Name: "a", Error: "down"}}
		c := New("a", func() []Source { return sources })
		c.Attach("root", new(int))
		view := c.view()
		c.Stop()
		if view.Sources[0].Error != "down" || c.view().Sources[0].Error != "" {
			t.Errorf("the view has %+v, a new view %+v; want the error only in the first", view.Sources, c.view().Sources)
		}
		c.Retire("tree")
		time.Sleep(time.Hour + time.Second)
		Channels() // discards a, which has been idle for more than an hour
	})
}
