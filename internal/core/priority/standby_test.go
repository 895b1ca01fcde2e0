package priority_test

import (
	"slices"
	"testing"

	core "github.com/understudy-lb/understudy/internal/core/priority"
	scenario "github.com/understudy-lb/understudy/internal/testing/priorityscenario"
)

// An update removes all priorities while a standby is requested. The standby must not be created.
func TestNoStandbyAfterAllPrioritiesAreRemoved(t *testing.T) {
	config := scenario.DefaultConfig("a", "b")
	config.WarmStandby = 1
	c := core.New()
	c.BeginUpdate(config)
	c.EndUpdate()
	c.Updated("a")
	actions := c.Reported("a", core.Ready)
	if !slices.ContainsFunc(actions, func(a core.Action) bool { return a.Kind == core.CallStandbyDue }) {
		t.Fatalf("a is READY: got %v, want CallStandbyDue", actions)
	}
	c.BeginUpdate(scenario.DefaultConfig())
	c.EndUpdate()
	if actions := c.StandbyDue(); len(actions) > 0 {
		t.Errorf("StandbyDue returned %v, want no actions", actions)
	}
}

// A standby is requested once. It is created neither during an update nor while another child is
// being created.
func TestStandbyIsRequestedOnce(t *testing.T) {
	config := scenario.DefaultConfig("a", "b", "c")
	config.WarmStandby = 1
	c := core.New()
	c.BeginUpdate(config)
	c.EndUpdate()
	c.Updated("a")
	c.Reported("a", core.Ready) // requests b
	for _, action := range c.Reported("a", core.Ready) {
		if action.Kind == core.CallStandbyDue {
			t.Error("b was requested twice")
		}
	}
	config.Priorities = []string{"c", "a", "b"}
	c.BeginUpdate(config)
	if actions := c.StandbyDue(); len(actions) > 0 {
		t.Errorf("during the update, StandbyDue returned %v, want no actions", actions)
	}
	c.EndUpdate() // creates c
	if actions := c.StandbyDue(); len(actions) > 0 {
		t.Errorf("before the update of c, StandbyDue returned %v, want no actions", actions)
	}
}

func TestStandby(t *testing.T) {
	config := scenario.DefaultConfig("a", "b", "c")
	config.WarmStandby = 1
	d := &driven{Core: core.New()}
	d.do(d.BeginUpdate(config))
	d.do(d.EndUpdate())
	if d.Standby("b") {
		t.Error("a is connecting, so b is no standby yet")
	}
	d.do(d.Reported("a", core.Ready))
	if d.Standby("a") || !d.Standby("b") || d.Standby("c") {
		t.Error("a is READY, so b is the only standby")
	}
	d.do(d.BeginUpdate(config))
	if d.Standby("b") {
		t.Error("during an update, there is no standby")
	}
}
