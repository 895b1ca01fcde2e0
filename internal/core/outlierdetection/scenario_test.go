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
	phase     core.Phase
	lines     []string

	unproven map[*core.Endpoint[stats]]bool
}

type stats struct {
	name                                     string
	successes, failures, consecutiveFailures uint64
	answers, refusals                        uint64
	began                                    int
	firstFailure                             int
	unavailable                              bool
	calls                                    []*call
}

type call struct {
	number   int
	epoch    uint64
	doubted  bool
	countsAt time.Time // when the call counts as answered although it has not ended, or zero if never
	endpoint *core.Endpoint[stats]
}

func newCoreTarget(random func() uint32) *coreTarget {
	return &coreTarget{core: core.New[stats](random), endpoints: map[string]*core.Endpoint[stats]{}, now: time.Unix(1000, 0), unproven: map[*core.Endpoint[stats]]bool{}}
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

func (a *coreTarget) Begin(endpoint string, deadline bool) {
	e := a.endpoints[endpoint]
	e.Attached.began++
	c := &call{number: e.Attached.began, epoch: e.Epoch(), doubted: e.Doubted() && a.config.ReportEmptied, endpoint: e}
	if c.doubted && !deadline {
		c.countsAt = a.now.Add(a.config.Interval)
	}
	e.Attached.calls = append(e.Attached.calls, c)
}

func (a *coreTarget) End(endpoint, how string) {
	e := a.endpoints[endpoint]
	s := &e.Attached
	c := s.calls[0]
	s.calls = s.calls[1:]
	if a.config.NoOp() || how == "dropped" {
		return
	}
	if how == "ok" || how == "cancelled" {
		s.successes++
		if c.number > s.firstFailure {
			s.consecutiveFailures = 0
		}
		a.answered(c)
		return
	}
	s.failures++
	s.unavailable = how == "lost"
	if a.isCurrent(c) {
		s.refusals++
	}
	if s.consecutiveFailures++; s.consecutiveFailures == 1 {
		s.firstFailure = s.began
	}
	if config := a.config.ConsecutiveFailuresEjection; config != nil && s.consecutiveFailures >= uint64(config.Failures) {
		s.consecutiveFailures = 0
		e.Unavailable = s.unavailable
		a.core.Failed(e, a.now)
		a.applyOutcome()
	}
}

func (a *coreTarget) isCurrent(c *call) bool {
	return c.doubted && c.epoch == c.endpoint.Epoch() && a.endpoints[c.endpoint.Attached.name] == c.endpoint
}

func (a *coreTarget) answered(c *call) {
	if a.isCurrent(c) {
		c.endpoint.Attached.answers++
		a.core.Answered(c.endpoint)
		a.applyOutcome()
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
		if c := a.nextCounted(); c != nil && (!ok || c.countsAt.Before(sweepTime)) && !c.countsAt.After(end) {
			a.now = c.countsAt
			c.countsAt = time.Time{}
			a.answered(c)
			continue
		}
		if !ok || sweepTime.After(end) {
			break
		}
		a.now = sweepTime
		a.sweep()
	}
	a.now = end
}

func (a *coreTarget) nextCounted() (next *call) {
	for _, e := range a.core.Endpoints() {
		for _, c := range e.Attached.calls {
			if !c.countsAt.IsZero() && (next == nil || c.countsAt.Before(next.countsAt)) {
				next = c
			}
		}
	}
	return next
}

func (a *coreTarget) sweep() {
	for _, e := range a.core.Endpoints() {
		s := &e.Attached
		e.Successes, e.Failures, e.Answers, e.FailedAnswers, e.Unavailable = s.successes, s.failures, s.answers, s.refusals, s.unavailable
		s.successes, s.failures, s.answers, s.refusals = 0, 0, 0, 0
		if e.Ejected() {
			s.consecutiveFailures = 0
		}
	}
	a.core.Sweep(a.now)
	a.applyOutcome()
}

func (a *coreTarget) applyOutcome() {
	outcome := a.core.Take()
	for _, e := range outcome.Doubts {
		e.Attached.answers, e.Attached.refusals = 0, 0
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
	if phase := a.core.Phase(); phase != a.phase {
		a.phase = phase
		a.lines = append(a.lines, "tier "+phase.String())
	}
}

func (a *coreTarget) Take() []string {
	lines := a.lines
	a.lines = nil
	for _, e := range a.core.Endpoints() {
		if e.Unproven() != a.unproven[e] {
			a.unproven[e] = e.Unproven()
			if !e.Ejected() {
				lines = append(lines, outlierscenario.Unproven(e.Attached.name, e.Unproven()))
			}
		}
	}
	return lines
}

func (a *coreTarget) calls(endpoint string, n int, how string) {
	for range n {
		a.Begin(endpoint, true)
		a.End(endpoint, how)
	}
}

func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		outlierscenario.Run(t, path, func(d *outlierscenario.Draw) outlierscenario.Target { return newCoreTarget(d.Next) })
	})
}
