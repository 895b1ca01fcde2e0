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
		steps := scenario.Steps(true).Draw(t, "steps")
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
	if hasAfter := a.Kind == core.StartFailover || a.Kind == core.StartDeactivation || a.Kind == core.PublishTimeout; a.After != 0 && !hasAfter {
		w.fail("the action %+v has a duration", a)
	}
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
	}
	for name := range w.existing {
		if _, ok := w.target.core.State(name); !ok {
			w.fail("%q was removed without a Destroy", name)
		}
	}
}
