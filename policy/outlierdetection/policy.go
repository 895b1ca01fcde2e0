package outlierdetection

import (
	"fmt"
	"log/slog"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	core "github.com/understudy-lb/understudy/internal/core/outlierdetection"
	"github.com/understudy-lb/understudy/internal/lb/serial"
	"github.com/understudy-lb/understudy/internal/lb/shell"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
	"github.com/understudy-lb/understudy/internal/lb/tally"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

type policy struct {
	*shell.Shell
	child          *shell.Child
	state          balancer.State
	core           *core.Core[endpointStats]
	bound          bool // subchannels are already assigned to endpoints, and the core knows their connections
	added, removed []*endpoint
	place          stateattr.Labels

	reports serial.Limit

	updates uint32

	subConns
}

const sweepTimer = 0

func newPolicy(s *shell.Shell, random func() uint32) *policy {
	p := &policy{Shell: s, state: shell.Connecting(), core: core.New[endpointStats](random)}
	p.unbound = make(map[*subConn]struct{})
	s.ClientConn = &clientConn{s.ClientConn, p}
	p.child = s.NewChild("", shell.Handlers{Reported: p.reported})
	return p
}

func (p *policy) reported(_ *shell.Child, state balancer.State) {
	p.state = state
	if state.ConnectivityState == connectivity.TransientFailure {
		p.core.AllConnectsFailed()
		p.applyOutcome()
	}
	p.Publish()
}

// Begin first updates the map of endpoints, then the child (A50, "Outlier Detection Behavior").
func (p *policy) Begin(c *lbconfig.OutlierDetection, state resolver.State) {
	p.place = stateattr.LabelsOf(state)
	var list []*endpoint
	if c.Ejects() {
		list = p.list(state.Endpoints)
	} else {
		p.bound = false
	}
	if p.core.Update(coreConfig(c, state), list, time.Now()) {
		for _, e := range list {
			e.Attached.reset()
		}
	}
	p.setRules(rulesOf(c))
	if !p.bound {
		for _, e := range p.bind(list) {
			p.core.Connection(e, p.connection(e))
		}
		p.added, p.removed = nil, nil
	}
	p.applyOutcome()
	p.startTimer()
	p.child.Update(c.ChildPolicy, state)
}

func (p *policy) End() {}

// startTimer starts the timer for the next sweep. An update doesn't extend an interval that's
// already running.
func (p *policy) startTimer() {
	at, runs := p.core.Next()
	if !runs {
		p.child.StopTimer(sweepTimer)
		return
	}
	p.child.StartTimer(sweepTimer, max(0, time.Until(at)), p.sweep)
}

func (p *policy) sweep() {
	for _, e := range p.core.Endpoints() {
		e.Successes, e.Failures = e.Attached.swap()
		if e.Ejected() {
			e.Attached.consecutive.Store(0) // failures from before this ejection must not count towards the next one
		}
	}
	p.core.Sweep(time.Now())
	p.applyOutcome()
	p.startTimer()
}

func (p *policy) applyOutcome() {
	outcome := p.core.Take()
	for _, e := range outcome.Ejections {
		target, stats := p.Options.Target.String(), &e.Endpoint.Attached
		code := printable.Code(codes.Code(stats.code.Load()))
		stats.ejectionLogged = p.report("ejected", fmt.Sprintf("endpoint %s is ejected by %v; its last failed call ended with %s", stats.name, e.By, code),
			slog.String("endpoint", stats.name), slog.String("priority", p.place.Priority), slog.String("by", e.By.String()), slog.String("code", code))
		at := enforcedAt.Limit(target, tally.Labels{p.place.Priority, p.place.Service})
		ejectionsEnforced.Record(p.ClientConn.MetricsRecorder(), 1, target, at[0], e.By.String(), at[1])
	}
	for _, e := range outcome.States {
		p.stateChanged(e)
		if e.State() != core.Ejected && e.Attached.ejectionLogged {
			e.Attached.ejectionLogged = false
			p.report("ejection ended", fmt.Sprintf("endpoint %s is no longer ejected", e.Attached.name), slog.String("endpoint", e.Attached.name))
		}
	}
	for _, c := range outcome.Changes {
		for _, s := range p.subConnsOf(c.Endpoint) {
			s.setEjected(c.Ejected)
		}
	}
}

// report logs an ejection, or that one has ended. It returns false if there have been too many to
// log.
func (p *policy) report(message, text string, attrs ...slog.Attr) bool {
	if !p.reports.Allows() {
		return false
	}
	p.Warn("outlier_detection", message, text, attrs...)
	return true
}

// State returns the child's state. The picker needs wrapping only if the child doesn't use
// shell.Counted.
func (p *policy) State() balancer.State {
	state := p.state
	if p.uncountedSubConns.Load() > 0 {
		state.Picker = &picker{state.Picker, p}
	}
	return state
}

func (p *policy) Children(yield func(string, shell.Below) bool) {
	if p.child.Exists() {
		yield("", p.child)
	}
}

func (p *policy) ExitIdle() { p.child.ExitIdle() }

func (p *policy) Describe(s *shell.Snapshot) {
	if p.core.NoOp() {
		return
	}
	d := shell.OutlierDetection{Hidden: p.core.HidesEjections()}
	for _, e := range p.core.Endpoints() {
		if e.Ejected() {
			d.Ejected = append(d.Ejected, shell.Ejected{Name: e.Attached.name, By: e.EjectedBy(), Code: codes.Code(e.Attached.code.Load()), Until: p.core.EjectedUntil(e)})
		}
	}
	s.Details = d
}

func coreConfig(c *lbconfig.OutlierDetection, state resolver.State) core.Config {
	return core.Config{
		Interval:                    time.Duration(c.Interval),
		BaseEjectionTime:            time.Duration(c.BaseEjectionTime),
		MaxEjectionTime:             time.Duration(c.MaxEjectionTime),
		MaxEjectionPercent:          c.MaxEjectionPercent,
		SuccessRateEjection:         (*core.SuccessRateEjection)(c.SuccessRateEjection),
		FailurePercentageEjection:   (*core.FailurePercentageEjection)(c.FailurePercentageEjection),
		ConsecutiveFailuresEjection: (*core.ConsecutiveFailuresEjection)(c.ConsecutiveFailuresEjection),
		BelowOverflow:               stateattr.IsBelowOverflow(state),
	}
}
