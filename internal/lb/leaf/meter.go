package leaf

import (
	"strings"
	"sync"

	"google.golang.org/grpc/connectivity"
	estats "google.golang.org/grpc/experimental/stats"

	"github.com/understudy-lb/understudy/internal/lb/serial"
	"github.com/understudy-lb/understudy/internal/lb/shell"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
	"github.com/understudy-lb/understudy/internal/lb/tally"
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

type Counts [6]int64

// Series is what the metric shows for an endpoint: its state and, for TRANSIENT_FAILURE, the
// reason.
type Series uint8

// The first four are in the same order as the states in core/weightedroundrobin.
const (
	Ready Series = iota
	Connecting
	Idle
	Failed
	FailedTLS
	Ejected
)

var series = [...]struct{ state, failure string }{
	Ready:      {connectivity.Ready.String(), ""},
	Connecting: {connectivity.Connecting.String(), ""},
	Idle:       {connectivity.Idle.String(), ""},
	Failed:     {connectivity.TransientFailure.String(), "other"},
	FailedTLS:  {connectivity.TransientFailure.String(), "tls"},
	Ejected:    {connectivity.TransientFailure.String(), "ejected"},
}

func SeriesOf(state connectivity.State, err error) Series {
	switch state {
	case connectivity.Ready:
		return Ready
	case connectivity.Connecting:
		return Connecting
	case connectivity.Idle:
		return Idle
	case connectivity.TransientFailure, connectivity.Shutdown:
	}
	if err == nil {
		return Failed
	}
	// The endpoints' policies don't pass on errors because those may be statuses, so all we have is
	// the text.
	switch text := err.Error(); {
	case strings.Contains(text, shell.ErrEjected.Error()):
		return Ejected
	case strings.Contains(text, "tls: "): // how crypto/tls errors begin
		return FailedTLS
	}
	return Failed
}

func (c Counts) Plus(other Counts) Counts {
	for i := range c {
		c[i] += other[i]
	}
	return c
}

func (c Counts) negative() Counts {
	for i := range c {
		c[i] = -c[i]
	}
	return c
}

var seriesLimit tally.Bound

var endpointCounts tally.Board[labels, Counts]

// Meter exports metrics of the endpoints below one policy. We can't record each pick, as that would
// make picks slow. Most pickers count picks anyway, so we register a callback that records how many
// there were since the last export. Those that don't, e.g. the picker of a single endpoint, start
// with the channel's first export.
type Meter struct {
	Shell *shell.Shell
	// TakePicks returns how many picks there were since the last call. Calls are never concurrent.
	TakePicks func() uint64
	// Counting is called, on the policy's serializer, once pickers must count.
	Counting func()

	added    Counts            // what we've added to endpointCounts
	register serial.Serializer // registers the reporter on its own goroutine, since a recorder may be waiting for an export, which calls Report

	mu         sync.Mutex // guards the fields below
	labels     labels
	service    string
	registered bool
	unregister func()
	counts     bool
	exported   *exportFlag // nil until registered
}

// SetLabels sets the labels of the metrics. It must run on the policy's serializer.
func (m *Meter) SetLabels(given stateattr.Labels) {
	target := m.Shell.Options.Target.String()
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
		m.registered, m.exported = true, acquireExportFlag(m.Shell.ClientConn.MetricsRecorder())
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
	recorder := m.Shell.ClientConn.MetricsRecorder()
	m.register.Enqueue(func() { m.unregister = recorder.RegisterAsyncReporter(m, endpointsMetric) })
}

func (m *Meter) Set(current Counts) {
	if current == m.added {
		return
	}
	m.mu.Lock()
	labelSet := m.labels
	m.mu.Unlock()
	endpointCounts.Add(labelSet, current.Plus(m.added.negative()))
	m.added = current
}

func (m *Meter) Close() {
	m.Set(Counts{})
	m.mu.Lock()
	registered := m.registered
	m.registered = false
	record := m.takePicks()
	m.mu.Unlock()
	record()
	if registered {
		releaseExportFlag(m.Shell.ClientConn.MetricsRecorder(), m.exported)
		m.register.Enqueue(func() { m.unregister() })
	}
}

func (m *Meter) Counts() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.exported != nil && m.exported.Load()
}

// takePicks must be called with mu held. Its result must be called after mu has been released.
func (m *Meter) takePicks() func() {
	if m.exported == nil || !m.exported.Load() {
		return func() {}
	}
	picks := m.TakePicks()
	if picks == 0 {
		return func() {}
	}
	labelSet, service := m.labels, m.service
	return func() {
		picksMetric.Record(m.Shell.ClientConn.MetricsRecorder(), int64(picks), labelSet.target, labelSet.priority, labelSet.locality, service) //nolint:gosec // far below
	}
}

// Report implements estats.AsyncMetricReporter. It doesn't wait for the policy's events.
func (m *Meter) Report(r estats.AsyncMetricsRecorder) error {
	m.mu.Lock()
	labelSet, service, registered := m.labels, m.service, m.registered
	if !registered {
		m.mu.Unlock()
		return nil
	}
	m.exported.Store(true)
	first := !m.counts
	m.counts = true
	record := m.takePicks()
	m.mu.Unlock()
	record()
	for i, n := range endpointCounts.Sum(labelSet) {
		endpointsMetric.Record(r, n, labelSet.target, labelSet.priority, labelSet.locality, series[i].state, series[i].failure, service)
	}
	if first {
		m.Shell.Event(m.Counting)
	}
	return nil
}
