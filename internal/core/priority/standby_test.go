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
	actions := c.Reported("a", core.Ready, core.Tier{ReadyShare: 1})
	if !slices.ContainsFunc(actions, func(a core.Action) bool { return a.Kind == core.MakeStandby }) {
		t.Fatalf("a is READY: got %v, want a MakeStandby action", actions)
	}
	c.BeginUpdate(scenario.DefaultConfig())
	c.EndUpdate()
	if actions := c.StandbyDue(); len(actions) > 0 {
		t.Errorf("StandbyDue returned %v, want no actions", actions)
	}
}
