package outlierdetection

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	core "github.com/understudy-lb/understudy/internal/core/outlierdetection"
	"github.com/understudy-lb/understudy/internal/lb/shell"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
	"github.com/understudy-lb/understudy/internal/lb/tally"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

// policy is the balancer. Its core decides which endpoints are ejected (A50).
type policy struct {
	*shell.Shell
	child  *shell.Child
	state  balancer.State
	core   *core.Core[endpointStats]
	phase  core.Phase
	doubts bool
	codes  string            // status codes with which calls failed, if all endpoints are ejected
	known  map[key]*endpoint // nil unless calls are counted
	listed []*endpoint
	bound  bool // the subchannels are already assigned to the endpoints in listed, and the core knows their connections
	place  stateattr.Labels

	updates uint64

	subConns
}

const sweepTimer = 0

func newPolicy(s *shell.Shell, random func() uint32) *policy {
	p := &policy{Shell: s, state: shell.Connecting(), core: core.New[endpointStats](random)}
	p.all = make(map[*subConn]struct{})
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

// Begin updates the map of endpoints, and then the child (A50, "Outlier Detection Behavior").
func (p *policy) Begin(c *lbconfig.OutlierDetection, state resolver.State) {
	p.place = stateattr.LabelsOf(state)
	var list []*endpoint
	if c.Ejects() {
		list = p.list(state.Endpoints)
	} else {
		p.known, p.listed, p.bound = nil, nil, false
	}
	if p.core.Update(coreConfig(c), list, time.Now()) {
		for _, e := range list {
			e.Attached.reset()
		}
	}
	p.setRules(rulesOf(c))
	if !p.bound {
		p.bind(list)
		p.noteConnections(list)
	}
	p.applyOutcome()
	p.startTimer()
	p.child.Update(c.ChildPolicy, state)
}

func (p *policy) End() {}

// noteConnections reports the connections of the endpoints in a new list to the core. Later changes
// are reported by events.
func (p *policy) noteConnections(list []*endpoint) {
	for _, e := range list {
		// An endpoint without a connection counts as connecting, because the child will connect it. A
		// reserve may stay unconnected.
		if now := p.connection(e); now != core.Absent || e.Attached.reserve {
			p.core.Connection(e, now)
		}
	}
}

// startTimer starts the timer for the next sweep. An update does not restart a running interval.
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
		e.Answers, e.FailedAnswers = 0, 0
		if b := e.Attached.period.Load(); b != nil && b.proof != nil {
			e.Answers, e.FailedAnswers = b.proof.answers.Swap(0), b.proof.refusals.Swap(0)
		}
		e.Unavailable = e.Attached.unavailable()
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
		shell.Logger.Infof("outlier_detection: endpoint %s is ejected by %v", e.Endpoint.Attached.name, e.By)
		target := p.Options.Target.String()
		at := enforcedAt.Limit(target, tally.Labels{p.place.Priority, p.place.Service})
		ejectionsEnforced.Record(p.ClientConn.MetricsRecorder(), 1, target, at[0], e.By.String(), at[1])
	}
	for _, e := range outcome.Doubts {
		p.renew(e)
		if e.Attached.unproven.Swap(e.Unproven()) != e.Unproven() {
			for _, s := range p.subConnsOf(e) {
				s.pickerChanged()
			}
		}
	}
	for _, c := range outcome.Changes {
		for _, s := range p.subConnsOf(c.Endpoint) {
			s.setEjected(c.Ejected)
		}
	}
	if doubts := p.core.Unproven() > 0; doubts != p.doubts {
		p.doubts = doubts
		p.Publish()
	}
	if phase := p.core.Phase(); phase != p.phase {
		if phase == core.Emptied {
			p.codes = p.failures()
		}
		p.phase = phase
		shell.Logger.Warningf("outlier_detection: %s: %s", p.Options.Target.String(), p.logText())
		p.Publish()
	}
}

func (p *policy) logText() string {
	text := ""
	if p.place.Priority != "" {
		text = "priority " + p.place.Priority + ": "
	}
	switch p.phase {
	case core.Emptied:
		text += "calls to all of its endpoints fail"
		if p.codes != "" {
			text += " with " + p.codes
		}
	case core.HalfOpen:
		text += "a few calls probe whether its endpoints have recovered"
	default:
		text += "some of its endpoints are no longer ejected"
	}
	return text
}

// failures returns the status codes of the last failed calls to ejected endpoints: at most three,
// the most frequent first.
func (p *policy) failures() string {
	const most = 3
	counts := make(map[codes.Code]int)
	for _, e := range p.core.Endpoints() {
		if code := codes.Code(e.Attached.code.Load()); e.Ejected() && code != codes.OK {
			counts[code]++
		}
	}
	list := slices.SortedFunc(maps.Keys(counts), func(a, b codes.Code) int {
		return cmp.Or(counts[b]-counts[a], int(a)-int(b))
	})
	var names []string
	for _, code := range list[:min(most, len(list))] {
		names = append(names, printable.Code(code))
	}
	return strings.Join(names, ", ")
}

// State returns the child's state. The picker is wrapped only if the parent needs the phase, or if
// the child does not use shell.Counted.
func (p *policy) State() balancer.State {
	state := p.state
	if p.uncountedSubConns.Load() > 0 {
		state.Picker = &picker{state.Picker, p}
	}
	if p.phase != core.Usable || p.doubts {
		tier := shell.Tier{Condition: conditions[p.phase], Interval: p.core.Interval()}
		if p.phase != core.Usable {
			tier.Failures = p.codes
		}
		state.Picker = &reporting{state.Picker, tier}
	}
	return state
}

var conditions = [...]shell.Condition{core.Usable: shell.Usable, core.Emptied: shell.Emptied, core.HalfOpen: shell.HalfOpen}

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
	d := shell.OutlierDetection{Tier: conditions[p.phase]}
	for _, e := range p.core.Endpoints() {
		if e.Ejected() {
			d.Ejected = append(d.Ejected, shell.Ejected{Name: e.Attached.name, By: e.EjectedBy(), Until: p.core.EjectedUntil(e)})
		}
	}
	s.Details = d
}

func coreConfig(c *lbconfig.OutlierDetection) core.Config {
	return core.Config{
		Interval:                    time.Duration(c.Interval),
		BaseEjectionTime:            time.Duration(c.BaseEjectionTime),
		MaxEjectionTime:             time.Duration(c.MaxEjectionTime),
		MaxEjectionPercent:          c.MaxEjectionPercent,
		SuccessRateEjection:         (*core.SuccessRateEjection)(c.SuccessRateEjection),
		FailurePercentageEjection:   (*core.FailurePercentageEjection)(c.FailurePercentageEjection),
		ConsecutiveFailuresEjection: (*core.ConsecutiveFailuresEjection)(c.ConsecutiveFailuresEjection),
		ReportEmptied:               c.ReportEmptied,
	}
}
