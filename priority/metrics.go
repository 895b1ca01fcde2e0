package priority

import (
	"slices"
	"sync"

	"google.golang.org/grpc/connectivity"
	estats "google.golang.org/grpc/experimental/stats"

	"github.com/understudy-lb/understudy/internal/lbconfig"
	"github.com/understudy-lb/understudy/internal/serial"
	"github.com/understudy-lb/understudy/internal/stateattr"
	"github.com/understudy-lb/understudy/internal/tally"
)

var inUseMetric = estats.RegisterInt64AsyncGauge(estats.MetricDescriptor{
	Name:        "understudy.priority.in_use",
	Description: "Channels to the target in this process whose calls go to the priority.",
	Unit:        "{channel}",
	Labels:      []string{"grpc.target", "understudy.priority"},
	Default:     true,
})

type labels struct{ target, priority string }

type channels int64

func (c channels) Plus(by channels) channels { return c + by }

var uses tally.Board[labels, channels]

type meter struct {
	config   *lbconfig.Priority
	counted  labels
	register serial.Serializer // registers the reporter on a goroutine of its own, because a recorder may wait for an export, which calls Report

	mu         sync.Mutex // guards the following fields
	titles     []string
	unregister func()
}

func (p *policy) Settled(closed bool) {
	m := &p.meter
	if closed {
		p.count(labels{})
		m.register.Enqueue(func() {
			if m.unregister != nil {
				m.unregister()
			}
		})
		return
	}
	if p.config == nil {
		return
	}
	if m.config == nil {
		recorder := p.ClientConn.MetricsRecorder()
		m.register.Enqueue(func() { m.unregister = recorder.RegisterAsyncReporter(p, inUseMetric) })
	}
	if m.config != p.config {
		m.config = p.config
		titles := []string{stateattr.NoName}
		for _, child := range p.config.Priorities {
			titles = append(titles, p.title(child))
		}
		m.mu.Lock()
		m.titles = titles
		m.mu.Unlock()
	}
	now := labels{p.Options.Target.String(), stateattr.NoName}
	if p.inUse != "" && p.published.ConnectivityState != connectivity.TransientFailure {
		now.priority = p.title(p.inUse)
	}
	p.count(now)
}

// count counts this channel under new labels in the gauge, and no longer under the previous ones.
// Empty labels only remove it.
func (p *policy) count(now labels) {
	before := p.meter.counted
	if before == now {
		return
	}
	if before != (labels{}) {
		uses.Add(before, -1)
	}
	if now != (labels{}) {
		uses.Add(now, 1)
	}
	p.meter.counted = now
}

// Report implements estats.AsyncMetricReporter. It does not wait for the policy's events.
func (p *policy) Report(r estats.AsyncMetricsRecorder) error {
	p.meter.mu.Lock()
	titles := slices.Clone(p.meter.titles)
	p.meter.mu.Unlock()
	target := p.Options.Target.String()
	for _, title := range titles {
		inUseMetric.Record(r, int64(uses.Sum(labels{target, title})), target, title)
	}
	return nil
}

func (p *policy) place(child string) stateattr.Labels {
	return stateattr.Labels{Priority: p.title(child), Service: stateattr.ChannelOf(p.state).Services[child]}
}
