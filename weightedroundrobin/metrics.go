package weightedroundrobin

import (
	"sync"
	"weak"

	"google.golang.org/grpc/connectivity"
	estats "google.golang.org/grpc/experimental/stats"

	core "github.com/understudy-lb/understudy/internal/core/weightedroundrobin"
	"github.com/understudy-lb/understudy/internal/serial"
	"github.com/understudy-lb/understudy/internal/stateattr"
	"github.com/understudy-lb/understudy/internal/tally"
	"github.com/understudy-lb/understudy/internal/weighted"
)

var (
	endpointsMetric = estats.RegisterInt64AsyncGauge(estats.MetricDescriptor{
		Name:           "understudy.endpoints",
		Description:    "Endpoints of all channels to the target in this process, by state.",
		Unit:           "{endpoint}",
		Labels:         []string{"grpc.target", "understudy.priority", "grpc.lb.locality", "understudy.endpoint.state"},
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

// counts holds the number of endpoints in each state, indexed by core.State.
type counts [4]int64

func (c counts) Plus(by counts) counts {
	for i := range c {
		c[i] += by[i]
	}
	return c
}

var places tally.Bound

// everybodys sums the endpoint counts of all policies in the process.
var everybodys tally.Board[labels, counts]

// meter exports the metrics of a policy. To record each pick would make picks slow. Instead, the
// meter registers a callback for exports, which records the picks since the last export: schedulers
// count picks anyway. The picker of a single endpoint has no scheduler. It counts its picks only
// after the channel's first export.
type meter struct {
	policy   *policy
	settled  counts            // the counts that this policy has added to everybodys
	register serial.Serializer // registers the reporter on a goroutine of its own, because a recorder may wait for an export, which calls Report

	mu         sync.Mutex // guards the following fields
	labels     labels
	service    string
	registered bool
	unregister func()
	counts     bool   // pickers of a single endpoint count their picks
	asked      *asked // nil until registered
	picker     *weighted.Picker
	taken      uint64                        // how many of the picks of picker are already in picks
	last       weak.Pointer[weighted.Picker] // the previous picker, which calls may still use
	lastTaken  uint64
	picks      int64
}

// at sets the labels of the metrics. It must run on the policy's serializer.
func (m *meter) at(place stateattr.Labels) {
	target := m.policy.Options.Target.String()
	counted := places.Of(target, tally.Labels{place.Priority, place.Locality, place.Service})
	now, service := labels{target, counted[0], counted[1]}, counted[2]
	m.mu.Lock()
	before, known := m.labels, m.registered
	add := func() {}
	if before != now || m.service != service {
		add = m.take()
		m.labels, m.service = now, service
	}
	if !known {
		m.registered, m.asked = true, join(m.policy.ClientConn.MetricsRecorder())
	}
	m.mu.Unlock()
	add()
	if before != now {
		everybodys.Add(before, m.settled.negative())
		everybodys.Add(now, m.settled)
	}
	if known {
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

// settle updates everybodys with the policy's current endpoints. It is called after each batch of
// events.
func (m *meter) settle(closed bool) {
	var now counts
	if !closed {
		for state, n := range m.policy.core.Count() {
			now[state] = int64(n)
		}
	}
	if now == m.settled {
		return
	}
	m.mu.Lock()
	at := m.labels
	m.mu.Unlock()
	everybodys.Add(at, now.Plus(m.settled.negative()))
	m.settled = now
}

func (m *meter) close() {
	m.mu.Lock()
	registered := m.registered
	m.registered = false
	add := m.take()
	m.mu.Unlock()
	add()
	if registered {
		leave(m.policy.ClientConn.MetricsRecorder(), m.asked)
		m.register.Enqueue(func() { m.unregister() })
	}
}

// use sets the current picker. It must run on the policy's serializer.
func (m *meter) use(picker *weighted.Picker) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.read()
	m.last, m.lastTaken = weak.Make(m.picker), m.taken
	m.picker, m.taken = picker, 0
}

// alone reports whether a picker must count its picks although it has a single endpoint.
func (m *meter) alone() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asked != nil && m.asked.Load()
}

// read adds the picks since the last call of read to m.picks. The caller holds mu.
func (m *meter) read() {
	read := func(p *weighted.Picker, taken *uint64) {
		if p != nil {
			picks := p.Picks()
			m.picks += int64(picks - *taken)
			*taken = picks
		}
	}
	read(m.last.Value(), &m.lastTaken)
	read(m.picker, &m.taken)
}

// take resets m.picks and returns a function that records the picks. The caller holds mu, and must
// call the function after it has released mu.
func (m *meter) take() func() {
	m.read()
	if m.asked == nil || !m.asked.Load() || m.picks == 0 {
		return func() {}
	}
	picks, at, service := m.picks, m.labels, m.service
	m.picks = 0
	return func() {
		picksMetric.Record(m.policy.ClientConn.MetricsRecorder(), picks, at.target, at.priority, at.locality, service)
	}
}

// Report implements estats.AsyncMetricReporter. It does not wait for the policy's events.
func (m *meter) Report(r estats.AsyncMetricsRecorder) error {
	m.mu.Lock()
	at, service, registered := m.labels, m.service, m.registered
	if !registered {
		m.mu.Unlock()
		return nil
	}
	m.asked.Store(true)
	first := !m.counts
	m.counts = true
	add := m.take()
	m.mu.Unlock()
	add()
	for state, n := range everybodys.Sum(at) {
		endpointsMetric.Record(r, n, at.target, at.priority, at.locality, names[state], service)
	}
	if first {
		m.policy.Event(m.policy.core.Outdated) // request a picker that counts its picks
	}
	return nil
}

var names = [...]string{
	core.Ready:            connectivity.Ready.String(),
	core.Connecting:       connectivity.Connecting.String(),
	core.Idle:             connectivity.Idle.String(),
	core.TransientFailure: connectivity.TransientFailure.String(),
}
