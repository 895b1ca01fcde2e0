package weightedroundrobin

import (
	"strings"
	"sync"
	"weak"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	estats "google.golang.org/grpc/experimental/stats"

	core "github.com/understudy-lb/understudy/internal/core/weightedroundrobin"
	"github.com/understudy-lb/understudy/internal/lb/serial"
	"github.com/understudy-lb/understudy/internal/lb/shell"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
	"github.com/understudy-lb/understudy/internal/lb/tally"
	"github.com/understudy-lb/understudy/internal/lb/weighted"
)

var (
	endpointsMetric = estats.RegisterInt64AsyncGauge(estats.MetricDescriptor{
		Name:           "understudy.endpoints",
		Description:    "Endpoints of all channels to the target in this process, by state.",
		Unit:           "{endpoint}",
		Labels:         []string{"grpc.target", "understudy.priority", "grpc.lb.locality", "understudy.endpoint.state", "understudy.endpoint.failure"},
		OptionalLabels: []string{"grpc.lb.backend_service"},
		Default:        true,
	})
	picksMetric = estats.RegisterInt64Count(estats.MetricDescriptor{
		Name:           "understudy.picks",
		Description:    "Calls that were assigned to an endpoint. Requires that understudy.endpoints is exported, too.",
		Unit:           "{call}",
		Labels:         []string{"grpc.target", "understudy.priority", "grpc.lb.locality"},
		OptionalLabels: []string{"grpc.lb.backend_service"},
		Default:        true,
	})
)

type labels struct{ target, priority, locality string }

// counts holds the number of endpoints in each series: in each core.State, and apart from the others
// in TRANSIENT_FAILURE, those whose failure has a name.
type counts [6]int64

const (
	tlsFailure = core.TransientFailure + 1 + iota
	ejection
)

var series = [...]struct{ state, failure string }{
	core.Ready:            {connectivity.Ready.String(), ""},
	core.Connecting:       {connectivity.Connecting.String(), ""},
	core.Idle:             {connectivity.Idle.String(), ""},
	core.TransientFailure: {connectivity.TransientFailure.String(), "other"},
	tlsFailure:            {connectivity.TransientFailure.String(), "tls"},
	ejection:              {connectivity.TransientFailure.String(), "ejected"},
}

// seriesOf returns the series of an endpoint that has reported a state.
func seriesOf(state balancer.State) core.State {
	if state.ConnectivityState != connectivity.TransientFailure {
		return states[state.ConnectivityState]
	}
	err := shell.FailureOf(state.Picker)
	if err == nil {
		return core.TransientFailure
	}
	// The text decides, because policies of endpoints do not pass on errors, which may be statuses.
	switch text := err.Error(); {
	case strings.Contains(text, shell.ErrEjected.Error()):
		return ejection
	case strings.Contains(text, "tls: "): // so begin the errors of crypto/tls
		return tlsFailure
	}
	return core.TransientFailure
}

func (c counts) Plus(other counts) counts {
	for i := range c {
		c[i] += other[i]
	}
	return c
}

var seriesLimit tally.Bound

// endpointCounts sums the endpoint counts of all policies in the process.
var endpointCounts tally.Board[labels, counts]

// meter exports the metrics of a policy. Recording each pick would make picks slow. Instead, the
// meter registers a callback that records the picks since the last export, because schedulers count
// picks anyway. The picker of a single endpoint has no scheduler, so it counts its picks only after
// the channel's first export.
type meter struct {
	policy   *policy
	added    counts            // the counts that this policy has added to endpointCounts
	register serial.Serializer // registers the reporter on its own goroutine, because a recorder may wait for an export that calls Report

	mu           sync.Mutex // guards the following fields
	labels       labels
	service      string
	registered   bool
	unregister   func()
	countsSingle bool        // pickers of a single endpoint count their picks
	exported     *exportFlag // nil until registered
	picker       *weighted.Picker
	taken        uint64                        // number of picks of picker that picks already includes
	lastPicker   weak.Pointer[weighted.Picker] // the previous picker, which calls may still use
	lastTaken    uint64
	picks        int64
}

// setLabels sets the labels of the metrics. It must run on the policy's serializer.
func (m *meter) setLabels(given stateattr.Labels) {
	target := m.policy.Options.Target.String()
	limited := seriesLimit.Limit(target, tally.Labels{given.Priority, given.Locality, given.Service})
	current, service := labels{target, limited[0], limited[1]}, limited[2]
	m.mu.Lock()
	previous, registered := m.labels, m.registered
	record := func() {}
	if previous != current || m.service != service {
		record = m.takePicks()
		m.labels, m.service = current, service
	}
	if !registered {
		m.registered, m.exported = true, acquireExportFlag(m.policy.ClientConn.MetricsRecorder())
	}
	m.mu.Unlock()
	record()
	if previous != current {
		endpointCounts.Add(previous, m.added.negative())
		endpointCounts.Add(current, m.added)
	}
	if registered {
		return
	}
	recorder := m.policy.ClientConn.MetricsRecorder()
	m.register.Enqueue(func() { m.unregister = recorder.RegisterAsyncReporter(m, endpointsMetric) })
}

func (c counts) negative() counts {
	for i := range c {
		c[i] = -c[i]
	}
	return c
}

// updateCounts updates endpointCounts with the policy's current endpoints. It is called after each
// batch of events.
func (m *meter) updateCounts(closed bool) {
	var current counts
	if !closed {
		for state, n := range m.policy.core.Count() {
			current[state] = int64(n)
		}
		for _, named := range [...]core.State{tlsFailure, ejection} {
			current[named] = m.policy.failures[named]
			current[core.TransientFailure] -= current[named]
		}
	}
	if current == m.added {
		return
	}
	m.mu.Lock()
	labelSet := m.labels
	m.mu.Unlock()
	endpointCounts.Add(labelSet, current.Plus(m.added.negative()))
	m.added = current
}

func (m *meter) close() {
	m.mu.Lock()
	registered := m.registered
	m.registered = false
	record := m.takePicks()
	m.mu.Unlock()
	record()
	if registered {
		releaseExportFlag(m.policy.ClientConn.MetricsRecorder(), m.exported)
		m.register.Enqueue(func() { m.unregister() })
	}
}

// setPicker sets the current picker. It must run on the policy's serializer.
func (m *meter) setPicker(picker *weighted.Picker) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.readPicks()
	m.lastPicker, m.lastTaken = weak.Make(m.picker), m.taken
	m.picker, m.taken = picker, 0
}

// countsSinglePicker reports whether the picker of a single endpoint must count its picks.
func (m *meter) countsSinglePicker() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.exported != nil && m.exported.Load()
}

// readPicks adds the picks since its last call to m.picks. The caller holds mu.
func (m *meter) readPicks() {
	add := func(p *weighted.Picker, taken *uint64) {
		if p != nil {
			picks := p.Picks()
			m.picks += int64(picks - *taken)
			*taken = picks
		}
	}
	add(m.lastPicker.Value(), &m.lastTaken)
	add(m.picker, &m.taken)
}

// takePicks resets m.picks and returns a function that records the picks. The caller holds mu, and
// must call the function after it has released mu.
func (m *meter) takePicks() func() {
	m.readPicks()
	if m.exported == nil || !m.exported.Load() || m.picks == 0 {
		return func() {}
	}
	picks, labelSet, service := m.picks, m.labels, m.service
	m.picks = 0
	return func() {
		picksMetric.Record(m.policy.ClientConn.MetricsRecorder(), picks, labelSet.target, labelSet.priority, labelSet.locality, service)
	}
}

// Report implements estats.AsyncMetricReporter. It does not wait for the policy's events.
func (m *meter) Report(r estats.AsyncMetricsRecorder) error {
	m.mu.Lock()
	labelSet, service, registered := m.labels, m.service, m.registered
	if !registered {
		m.mu.Unlock()
		return nil
	}
	m.exported.Store(true)
	first := !m.countsSingle
	m.countsSingle = true
	record := m.takePicks()
	m.mu.Unlock()
	record()
	for i, n := range endpointCounts.Sum(labelSet) {
		endpointsMetric.Record(r, n, labelSet.target, labelSet.priority, labelSet.locality, series[i].state, series[i].failure, service)
	}
	if first {
		m.policy.Event(m.policy.core.Outdated) // request a picker that counts its picks
	}
	return nil
}
