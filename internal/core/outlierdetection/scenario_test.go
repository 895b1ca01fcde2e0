package outlierdetection_test

import (
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	core "github.com/understudy-lb/understudy/internal/core/outlierdetection"
	"github.com/understudy-lb/understudy/internal/testing/outlierscenario"
)

// alone is the core with nothing but counters around it. The real policy runs the same
// files, in package outlierdetection.
type alone struct {
	core   *core.Core[counted]
	config core.Config
	known  map[string]*core.Endpoint[counted]
	now    time.Time
	phase  core.Phase
	lines  []string
}

// counted is what is counted of an endpoint: A50's active bucket, and failures in a row.
type counted struct {
	name                     string
	successes, failures, row uint64
}

func newAlone(random func() uint32) *alone {
	return &alone{core: core.New[counted](random), known: map[string]*core.Endpoint[counted]{}, now: time.Unix(1000, 0)}
}

func (a *alone) Update(config core.Config, endpoints []string) {
	a.config = config
	known := map[string]*core.Endpoint[counted]{}
	var list []*core.Endpoint[counted]
	var fresh []*core.Endpoint[counted]
	for _, name := range endpoints {
		e := a.known[name]
		if e == nil {
			e = &core.Endpoint[counted]{Shell: counted{name: name}}
			fresh = append(fresh, e)
		}
		known[name] = e
		list = append(list, e)
	}
	a.known = known
	if a.core.Update(config, list, a.now) {
		for _, e := range list {
			e.Shell = counted{name: e.Shell.name}
		}
	}
	for _, e := range fresh {
		a.core.Connected(e, true)
	}
	a.settle()
	a.Advance(0) // the timer may be late already
}

func (a *alone) Call(endpoint string, ok bool) {
	e := a.known[endpoint]
	if a.config.NoOp() {
		return
	}
	if ok {
		e.Shell.successes++
		e.Shell.row = 0
		return
	}
	e.Shell.failures++
	e.Shell.row++
	if c := a.config.ConsecutiveFailuresEjection; c != nil && e.Shell.row >= uint64(c.Failures) {
		e.Shell.row = 0
		a.core.Failed(e, a.now)
		a.settle()
	}
}

func (a *alone) Connect(endpoint string, connected bool) {
	e := a.known[endpoint]
	if connected && e.Told() {
		a.lines = append(a.lines, endpoint+" TRANSIENT_FAILURE") // before the core hears of it
	}
	a.core.Connected(e, connected)
	a.settle()
}

func (a *alone) Advance(d time.Duration) {
	end := a.now.Add(d)
	for {
		at, runs := a.core.Next()
		if !runs || at.After(end) {
			break
		}
		if at.After(a.now) {
			a.now = at
		}
		for _, e := range a.core.Endpoints() {
			e.Successes, e.Failures = e.Shell.successes, e.Shell.failures
			e.Shell.successes, e.Shell.failures = 0, 0
			if e.Ejected() {
				e.Shell.row = 0
			}
		}
		a.core.Sweep(a.now)
		a.settle()
	}
	a.now = end
}

// settle writes down what an event changed.
func (a *alone) settle() {
	changes, _ := a.core.Take()
	for _, c := range changes {
		if !c.Endpoint.IsConnected() {
			continue // which the child sees as that
		}
		state := " READY"
		if c.Ejected {
			state = " TRANSIENT_FAILURE"
		}
		a.lines = append(a.lines, c.Endpoint.Shell.name+state)
	}
	if phase := a.core.Phase(); phase != a.phase {
		a.phase = phase
		a.lines = append(a.lines, "tier "+phase.String())
	}
}

func (a *alone) Take() []string {
	lines := a.lines
	a.lines = nil
	return lines
}

func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		outlierscenario.Run(t, path, func(d *outlierscenario.Draw) outlierscenario.Target { return newAlone(d.Next) })
	})
}

// connected returns how many endpoints are connected, and of how many of these the child
// is told that they are ejected.
func (a *alone) connected() (connected, told int) {
	for _, e := range a.core.Endpoints() {
		if e.IsConnected() {
			connected++
			if e.Told() {
				told++
			}
		}
	}
	return connected, told
}

// answers returns whether something is connected that is not ejected.
func (a *alone) answers() bool {
	return slices.ContainsFunc(a.core.Endpoints(), func(e *core.Endpoint[counted]) bool {
		return e.IsConnected() && !e.Ejected()
	})
}
