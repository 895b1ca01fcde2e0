package outlierdetection_test

import (
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	core "github.com/understudy-lb/understudy/internal/core/outlierdetection"
	"github.com/understudy-lb/understudy/internal/testing/outlierscenario"
)

// alone runs the scenarios on the core only. Package outlierdetection runs the same scenarios on
// the whole policy.
type alone struct {
	core   *core.Core[counted]
	config core.Config
	known  map[string]*core.Endpoint[counted]
	now    time.Time
	phase  core.Phase
	lines  []string

	unproven map[*core.Endpoint[counted]]bool
}

type counted struct {
	name                     string
	successes, failures, row uint64
	answers, refusals        uint64
	began                    int
	rowBegan                 int
	unavailable              bool
	calls                    []*call
}

type call struct {
	number   int
	epoch    uint64
	doubted  bool
	counts   time.Time // when the call counts as answered, or zero if never
	endpoint *core.Endpoint[counted]
}

func newAlone(random func() uint32) *alone {
	return &alone{core: core.New[counted](random), known: map[string]*core.Endpoint[counted]{}, now: time.Unix(1000, 0), unproven: map[*core.Endpoint[counted]]bool{}}
}

func (a *alone) Update(config core.Config, endpoints []string) {
	a.config = config
	known := map[string]*core.Endpoint[counted]{}
	var list []*core.Endpoint[counted]
	var fresh []*core.Endpoint[counted]
	for _, name := range endpoints {
		e := a.known[name]
		if e == nil {
			e = &core.Endpoint[counted]{Attached: counted{name: name}}
			fresh = append(fresh, e)
		}
		known[name] = e
		list = append(list, e)
	}
	a.known = known
	if a.core.Update(config, list, a.now) {
		for _, e := range list {
			e.Attached = counted{name: e.Attached.name, calls: e.Attached.calls, began: e.Attached.began}
		}
	}
	a.settle()
	for _, e := range fresh {
		a.Connect(e.Attached.name, "connect")
	}
	a.Advance(0) // the timer may already be due
}

func (a *alone) Begin(endpoint string, deadline bool) {
	e := a.known[endpoint]
	e.Attached.began++
	c := &call{number: e.Attached.began, epoch: e.Epoch(), doubted: e.Doubted() && a.config.ReportEmptied, endpoint: e}
	if c.doubted && !deadline {
		c.counts = a.now.Add(a.config.Interval)
	}
	e.Attached.calls = append(e.Attached.calls, c)
}

func (a *alone) End(endpoint, how string) {
	e := a.known[endpoint]
	s := &e.Attached
	c := s.calls[0]
	s.calls = s.calls[1:]
	if a.config.NoOp() || how == "dropped" {
		return
	}
	if how == "ok" || how == "cancelled" {
		s.successes++
		if c.number > s.rowBegan {
			s.row = 0
		}
		a.answered(c)
		return
	}
	s.failures++
	s.unavailable = how == "lost"
	if a.current(c) {
		s.refusals++
	}
	if s.row++; s.row == 1 {
		s.rowBegan = s.began
	}
	if config := a.config.ConsecutiveFailuresEjection; config != nil && s.row >= uint64(config.Failures) {
		s.row = 0
		e.Unavailable = s.unavailable
		a.core.Failed(e, a.now)
		a.settle()
	}
}

func (a *alone) current(c *call) bool {
	return c.doubted && c.epoch == c.endpoint.Epoch() && a.known[c.endpoint.Attached.name] == c.endpoint
}

func (a *alone) answered(c *call) {
	if a.current(c) {
		c.endpoint.Attached.answers++
		a.core.Answered(c.endpoint)
		a.settle()
	}
}

func (a *alone) Connect(endpoint, how string) {
	e := a.known[endpoint]
	if how == "connect" && e.Told() && !e.IsConnected() {
		a.lines = append(a.lines, endpoint+" TRANSIENT_FAILURE") // the child policy is notified before the core
	}
	a.core.Connection(e, map[string]core.Connection{"connect": core.Connected, "disconnect": core.Connecting, "refuse": core.Broken}[how])
	a.settle()
}

func (a *alone) Advance(d time.Duration) {
	end := a.now.Add(d)
	for {
		at, runs := a.core.Next()
		if runs && at.Before(a.now) {
			at = a.now
		}
		if c := a.longest(); c != nil && (!runs || c.counts.Before(at)) && !c.counts.After(end) {
			a.now = c.counts
			c.counts = time.Time{}
			a.answered(c)
			continue
		}
		if !runs || at.After(end) {
			break
		}
		a.now = at
		a.sweep()
	}
	a.now = end
}

func (a *alone) longest() (next *call) {
	for _, e := range a.core.Endpoints() {
		for _, c := range e.Attached.calls {
			if !c.counts.IsZero() && (next == nil || c.counts.Before(next.counts)) {
				next = c
			}
		}
	}
	return next
}

func (a *alone) sweep() {
	for _, e := range a.core.Endpoints() {
		s := &e.Attached
		e.Successes, e.Failures, e.Answers, e.Refusals, e.Unavailable = s.successes, s.failures, s.answers, s.refusals, s.unavailable
		s.successes, s.failures, s.answers, s.refusals = 0, 0, 0, 0
		if e.Ejected() {
			s.row = 0
		}
	}
	a.core.Sweep(a.now)
	a.settle()
}

func (a *alone) settle() {
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

func (a *alone) Take() []string {
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

func (a *alone) calls(endpoint string, n int, how string) {
	for range n {
		a.Begin(endpoint, true)
		a.End(endpoint, how)
	}
}

func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		outlierscenario.Run(t, path, func(d *outlierscenario.Draw) outlierscenario.Target { return newAlone(d.Next) })
	})
}
