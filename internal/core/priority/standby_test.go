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

// With Overflow, a standby is connected before the priority in use is READY, and is a standby from
// the start, so that it gets only a part of a long list of endpoints. It is not created for a
// priority that is IDLE.
func TestStandbyFromTheStart(t *testing.T) {
	config := scenario.DefaultConfig("a", "b", "c")
	config.WarmStandby, config.Overflow = 1, true
	d := &driven{Core: core.New()}
	d.do(d.BeginUpdate(config))
	d.do(d.EndUpdate())
	d.want(t, "ab", "")
	if !d.Standby("b") || d.InUse() != "a" {
		t.Errorf("%s is in use, want a, with b as a standby", d.InUse())
	}
	d.do(d.Reported("b", core.Ready, core.Tier{ReadyShare: 1}))
	if d.InUse() != "a" {
		t.Errorf("%s is in use while a connects, want a", d.InUse())
	}
	d.do(d.FailoverTimerFired("a"))
	d.want(t, "abc", "")
	if d.Standby("b") || d.InUse() != "b" {
		t.Errorf("%s is in use after the failover timeout, want b", d.InUse())
	}

	c := core.New()
	c.BeginUpdate(config)
	c.EndUpdate()
	c.Reported("a", core.Idle, core.Tier{})
	if actions := c.Updated("a"); slices.ContainsFunc(actions, func(a core.Action) bool { return a.Kind == core.MakeStandby }) {
		t.Errorf("a is IDLE: got %v, want no MakeStandby action", actions)
	}
}
