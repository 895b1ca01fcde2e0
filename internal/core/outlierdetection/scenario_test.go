package outlierdetection_test

import (
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	core "github.com/understudy-lb/understudy/internal/core/outlierdetection"
	"github.com/understudy-lb/understudy/internal/testing/outlierscenario"
)

// coreTarget runs the scenarios on the core. The tests of the policy, in the package
// outlierdetection, run the same scenarios on the whole policy.
type coreTarget struct {
	core      *core.Core[stats]
	config    core.Config
	endpoints map[string]*core.Endpoint[stats]
	now       time.Time
	lines     []string
}

type stats struct {
	name                                     string
	successes, failures, consecutiveFailures uint64
	began, firstFailure, ejection            int // numbers of calls that had begun
	calls                                    []call
}

// call is a call that has not ended.
type call struct {
	number int
	state  core.State // of its endpoint when it began
}

func newCoreTarget(random func() uint32) *coreTarget {
	return &coreTarget{core: core.New[stats](random), endpoints: map[string]*core.Endpoint[stats]{}, now: time.Unix(1000, 0)}
}

func (a *coreTarget) Update(config core.Config, endpoints []string) {
	a.config = config
	kept := map[string]*core.Endpoint[stats]{}
	var list []*core.Endpoint[stats]
	var added []*core.Endpoint[stats]
	for _, name := range endpoints {
		e := a.endpoints[name]
		if e == nil {
			e = &core.Endpoint[stats]{Attached: stats{name: name}}
			added = append(added, e)
		}
		kept[name] = e
		list = append(list, e)
	}
	a.endpoints = kept
	if a.core.Update(config, list, a.now) {
		for _, e := range list {
			e.Attached = stats{name: e.Attached.name, calls: e.Attached.calls, began: e.Attached.began}
		}
	}
	a.applyOutcome()
	for _, e := range added {
		a.Connect(e.Attached.name, "connect")
	}
	a.Advance(0) // the timer may already be due
}

func (a *coreTarget) Begin(endpoint string) {
	e := a.endpoints[endpoint]
	e.Attached.began++
	e.Attached.calls = append(e.Attached.calls, call{e.Attached.began, e.State()})
}

func (a *coreTarget) End(endpoint, how string) {
	e := a.endpoints[endpoint]
	s := &e.Attached
	c := s.calls[0]
	s.calls = s.calls[1:]
	if a.config.NoOp() {
		return
	}
	defer a.applyOutcome()
	if how == "ok" {
		s.successes++
		if c.number > s.firstFailure {
			s.consecutiveFailures = 0
		}
		if c.number > s.ejection {
			a.core.Answered(e)
		}
		return
	}
	s.failures++
	if s.consecutiveFailures++; s.consecutiveFailures == 1 {
		s.firstFailure = s.began
	}
	config := a.config.ConsecutiveFailuresEjection
	if config == nil {
		return
	}
	atOnce := c.state == core.Returned && e.State() == core.Returned && c.number > s.ejection
	if s.consecutiveFailures >= uint64(config.Failures) {
		s.consecutiveFailures = 0
		a.core.Failed(e, a.now)
	} else if atOnce {
		a.core.Failed(e, a.now)
	}
}

func (a *coreTarget) Connect(endpoint, how string) {
	e := a.endpoints[endpoint]
	if how == "connect" && e.VisiblyEjected() && !e.IsConnected() {
		a.lines = append(a.lines, endpoint+" TRANSIENT_FAILURE") // the child policy is notified before the core
	}
	a.core.Connection(e, map[string]core.Connection{"connect": core.Connected, "disconnect": core.Connecting, "refuse": core.Broken}[how])
	a.applyOutcome()
}

func (a *coreTarget) Advance(d time.Duration) {
	end := a.now.Add(d)
	for {
		sweepTime, ok := a.core.Next()
		if ok && sweepTime.Before(a.now) {
			sweepTime = a.now
		}
		if !ok || sweepTime.After(end) {
			break
		}
		a.now = sweepTime
		a.sweep()
	}
	a.now = end
}

func (a *coreTarget) sweep() {
	for _, e := range a.core.Endpoints() {
		s := &e.Attached
		e.Successes, e.Failures = s.successes, s.failures
		s.successes, s.failures = 0, 0
		if e.Ejected() {
			s.consecutiveFailures = 0
		}
	}
	a.core.Sweep(a.now)
	a.applyOutcome()
}

func (a *coreTarget) applyOutcome() {
	outcome := a.core.Take()
	for _, e := range outcome.Ejections {
		e.Endpoint.Attached.ejection = e.Endpoint.Attached.began
	}
	for _, c := range outcome.Changes {
		if !c.Endpoint.IsConnected() {
			continue
		}
		state := " READY"
		if c.Ejected {
			state = " TRANSIENT_FAILURE"
		}
		a.lines = append(a.lines, c.Endpoint.Attached.name+state)
	}
}

func (a *coreTarget) Take() []string {
	lines := a.lines
	a.lines = nil
	return lines
}

func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		outlierscenario.Run(t, path, func(d *outlierscenario.Draw) outlierscenario.Target { return newCoreTarget(d.Next) })
	})
}
