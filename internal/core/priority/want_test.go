package priority_test

import (
	"slices"
	"testing"
	"time"

	core "github.com/understudy-lb/understudy/internal/core/priority"
	scenario "github.com/understudy-lb/understudy/internal/testing/priorityscenario"
)

// driven executes the actions that create children, as the policy does.
type driven struct {
	*core.Core
	children []string // that exist, in the order of their creation
	leaving  []string // whose deactivation timers run
}

func (d *driven) do(actions []core.Action) {
	for _, a := range actions {
		switch a.Kind {
		case core.Create:
			d.children = append(d.children, a.Child)
		case core.Update:
			d.do(d.Updated(a.Child))
		case core.CallStandbyDue:
			d.do(d.StandbyDue())
		case core.StartDeactivation:
			d.leaving = append(d.leaving, a.Child)
		case core.StopDeactivation:
			d.leaving = slices.DeleteFunc(d.leaving, func(name string) bool { return name == a.Child })
		}
	}
}

func (d *driven) want(t *testing.T, children, leaving string) {
	t.Helper()
	join := func(names []string) (joined string) {
		for _, name := range names {
			joined += name
		}
		return joined
	}
	if join(d.children) != children || join(d.leaving) != leaving {
		t.Errorf("children %v, leaving %v; want %s and %s", d.children, d.leaving, children, leaving)
	}
}

// While a priority cannot carry its calls, the next one that has not failed is connected. It is kept
// until nobody wants it, and then for the retention.
func TestWantStandbyBelow(t *testing.T) {
	config := scenario.DefaultConfig("a", "b", "c", "d")
	config.ChildRetention = time.Minute
	d := &driven{Core: core.New()}
	d.do(d.WantStandbyBelow("")) // before the first update
	d.do(d.BeginUpdate(config))
	d.do(d.EndUpdate())
	d.do(d.Reported("a", core.Ready))
	d.want(t, "a", "")
	d.do(d.WantStandbyBelow("a"))
	d.want(t, "ab", "")
	d.do(d.Reported("b", core.TransientFailure))
	d.want(t, "abc", "")
	d.do(d.Reported("c", core.Ready))
	d.do(d.WantStandbyBelow("c"))
	d.want(t, "abcd", "")
	d.do(d.WantStandbyBelow("a"))
	d.want(t, "abcd", "d")
	d.do(d.WantStandbyBelow(""))
	d.want(t, "abcd", "dbc")
	d.do(d.WantStandbyBelow("c"))
	d.want(t, "abcd", "")
	d.do(d.WantStandbyBelow("gone"))
	d.want(t, "abcd", "bcd")
	d.do(d.WantStandbyBelow("d")) // the last one
	d.want(t, "abcd", "")
}

func TestAwaited(t *testing.T) {
	d := &driven{Core: core.New()}
	d.do(d.BeginUpdate(scenario.DefaultConfig("a", "b")))
	d.do(d.EndUpdate())
	if !d.Awaited("a") || d.Awaited("b") {
		t.Error("a is connecting and has time; b does not exist")
	}
	d.do(d.FailoverTimerFired("a"))
	if d.Awaited("a") || !d.Awaited("b") {
		t.Error("the time of a is over, that of b begins")
	}
}
