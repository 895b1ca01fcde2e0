package priority_test

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"pgregory.net/rapid"

	core "github.com/understudy-lb/understudy/internal/core/priority"
	scenario "github.com/understudy-lb/understudy/internal/testing/priorityscenario"
)

func TestMain(m *testing.M) {
	flag.Set("rapid.checks", "1000")
	os.Exit(m.Run())
}

func TestModel(t *testing.T) {
	total := 0
	defer func() { t.Logf("%d steps", total) }()
	rapid.Check(t, func(t *rapid.T) {
		steps := scenario.Steps().Draw(t, "steps")
		w := newInvariants()
		got := scenario.Apply(w.target, steps, w.check)
		want := scenario.Expect(steps)
		total += len(want)
		if diff := scenario.Compare(steps, got, want); diff != "" {
			t.Fatal(diff)
		}
		if len(w.existing) > 0 {
			w.fail("never destroyed: %v", w.existing)
		}
		if len(w.failures) > 0 {
			t.Fatalf("%v\nin %v", w.failures, steps)
		}
	})
}

type invariants struct {
	target   *target
	existing map[string]bool
	inactive map[string]deactivation
	failures []string
}

type deactivation struct{ since, retention time.Duration }

func newInvariants() *invariants {
	w := &invariants{target: newTarget(), existing: map[string]bool{}, inactive: map[string]deactivation{}}
	w.target.observe = w.observe
	return w
}

func (w *invariants) fail(format string, args ...any) {
	w.failures = append(w.failures, fmt.Sprintf(format, args...))
}

func (w *invariants) observe(a core.Action) {
	switch a.Kind {
	case core.Create:
		if w.existing[a.Child] {
			w.fail("%s was created twice", a.Child)
		}
		if w.target.core.HasUsableHigher(a.Child) && !w.target.core.Standby(a.Child) {
			w.fail("%s was created although a higher one can be used", a.Child)
		}
		w.existing[a.Child] = true
	case core.StartDeactivation:
		w.inactive[a.Child] = deactivation{w.target.now, a.After}
	case core.StopDeactivation:
		delete(w.inactive, a.Child)
	case core.Destroy:
		if d, ok := w.inactive[a.Child]; ok && w.target.now != d.since+d.retention {
			w.fail("%s was destroyed after %v, not %v", a.Child, w.target.now-d.since, d.retention)
		}
		delete(w.existing, a.Child)
		delete(w.inactive, a.Child)
	case core.Publish, core.PublishTimeout, core.PublishEmpty:
		if w.target.inUpdate {
			w.fail("published in the middle of an update")
		}
		if a.Kind != core.PublishEmpty && a.Child != w.target.core.InUse() {
			w.fail("published %s while %s is in use", a.Child, w.target.core.InUse())
		}
	}
}

func (w *invariants) check(scenario.Step) {
	before := w.target.core.InUse()
	if actions := w.target.core.ChooseAgain(); len(actions) > 0 {
		w.fail("choosing again returns %v", actions)
	}
	if after := w.target.core.InUse(); after != before {
		w.fail("choosing again uses %q instead of %q", after, before)
	}
	if _, ok := w.inactive[before]; ok {
		w.fail("%q is in use and deactivated", before)
	}
	for _, timer := range w.target.timers {
		if !w.existing[timer.child] {
			w.fail("a timer of %q runs after it was destroyed", timer.child)
		}
		if timer.kind == core.StartFailback && !w.target.core.WaitsForFailback(timer.child) {
			w.fail("%q has a failback timer but does not wait for failback", timer.child)
		}
	}
	for name := range w.existing {
		if _, ok := w.target.core.State(name); !ok {
			w.fail("%q was removed without a Destroy", name)
		}
	}
}

// A timer that was stopped may fire nevertheless, because the stop can come too late. The event
// must then have no effect.
func TestLateTimers(t *testing.T) {
	c := core.New()
	c.BeginUpdate(scenario.DefaultConfig("a", "b"))
	c.EndUpdate()
	c.Updated("a")
	c.Reported("a", core.Ready, core.Tier{ReadyShare: 1})
	for name, fire := range map[string]func(string) []core.Action{
		"failover": c.FailoverTimerFired, "deactivation": c.DeactivationTimerFired, "failback": c.FailbackTimerFired,
	} {
		if actions := fire("a"); len(actions) > 0 {
			t.Errorf("the late %s timer returned %v", name, actions)
		}
		if state, _ := c.State("a"); state != core.Ready {
			t.Errorf("after the late %s timer a is %v, want READY", name, state)
		}
	}
}

// A child with a READY share of exactly MinReady is large enough, despite rounding errors. In this
// test, a locality of weight 1 and seven tenths of a locality of weight 2 are READY.
func TestChildAtMinReadyIsNotPoor(t *testing.T) {
	for _, previous := range []core.State{core.Connecting, core.Ready} {
		config := scenario.DefaultConfig("a", "b")
		config.MinReady, config.MinReadyRecovery = 0.8, 0.8
		c := core.New()
		c.BeginUpdate(config)
		c.EndUpdate()
		c.Updated("a")
		c.Reported("a", previous, core.Tier{ReadyShare: 0.5})
		sevenTenths, whole := 0.7, 1.0
		c.Reported("a", core.Ready, core.Tier{ReadyShare: (1*whole + 2*sevenTenths) / 3})
		if tier, poor := c.Poor("a"); poor {
			t.Errorf("a is poor with a READY share of %v, want not poor with MinReady 0.8", tier.ReadyShare)
		}
		c.Reported("a", core.Ready, core.Tier{ReadyShare: 0.799999})
		if _, poor := c.Poor("a"); !poor {
			t.Error("a is not poor with a READY share below 0.8")
		}
	}
}
