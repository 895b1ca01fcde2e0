package priority_test

import (
	"testing"

	core "github.com/understudy-lb/understudy/internal/core/priority"
	scenario "github.com/understudy-lb/understudy/internal/testing/priorityscenario"
)

// An event of a child that does not exist must have no effect. A timer that fires although it was
// stopped must not have any effect either.
func TestLateEventsHaveNoEffect(t *testing.T) {
	c := core.New()
	c.BeginUpdate(scenario.DefaultConfig("a", "b"))
	c.EndUpdate()
	c.Reported("a", core.Ready)
	c.Updated("a")
	for event, fire := range map[string]func(string) []core.Action{
		"FailoverTimerFired":     c.FailoverTimerFired,
		"DeactivationTimerFired": c.DeactivationTimerFired,
		"Updated":                c.Updated,
	} {
		for _, name := range []string{"a", "gone"} {
			if actions := fire(name); len(actions) > 0 {
				t.Errorf("%s of %s returned %v, want no actions", event, name, actions)
			}
		}
	}
	if actions := c.Reported("gone", core.TransientFailure); len(actions) > 0 {
		t.Errorf("a report of a child that does not exist returned %v", actions)
	}
	if actions := c.Refused("gone"); len(actions) > 0 {
		t.Errorf("a refusal of a child that does not exist returned %v", actions)
	}
	if name := c.InUse(); name != "a" {
		t.Errorf("%q is in use, want a", name)
	}
}

// A child refuses its endpoints, gets others outside of an update and refuses them for another reason.
func TestSecondRefusalIsPublished(t *testing.T) {
	c := core.New()
	c.BeginUpdate(scenario.DefaultConfig("a"))
	c.EndUpdate()
	c.Refused("a")
	c.Updated("a")
	if len(c.Refused("a")) == 0 {
		t.Error("the second refusal isn't published")
	}
}
