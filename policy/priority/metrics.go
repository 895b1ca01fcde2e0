package priority

import (
	"math"
	"slices"
	"sync"

	"google.golang.org/grpc/connectivity"
	estats "google.golang.org/grpc/experimental/stats"

	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	"github.com/understudy-lb/understudy/internal/core/share"
	"github.com/understudy-lb/understudy/internal/lb/serial"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
	"github.com/understudy-lb/understudy/internal/lb/tally"
)

var inUseMetric = estats.RegisterInt64AsyncGauge(estats.MetricDescriptor{
	Name:        "understudy.priority.in_use",
	Description: "Channels to the target in this process whose calls go to the priority.",
	Unit:        "{channel}",
	Labels:      []string{"grpc.target", "understudy.priority"},
	Default:     true,
})

var shedCalls = estats.RegisterInt64Count(estats.MetricDescriptor{
	Name:        "understudy.shed",
	Description: "Calls that were refused because no priority could carry them, by the lowest priority that was READY.",
	Unit:        "{call}",
	Labels:      []string{"grpc.target", "understudy.priority"},
	Default:     true,
})

var shedSeries tally.Bound

var shareMetric = estats.RegisterInt64AsyncGauge(estats.MetricDescriptor{
	Name:        "understudy.share",
	Description: "With overflow, the share of the calls offered to a READY priority that it takes: the mean of all channels to the target in this process.",
	Unit:        "{percent}",
	Labels:      []string{"grpc.target", "understudy.priority"},
	Default:     true,
})

func (p *policy) countShed(lowest string) func() {
	recorder, target := p.ClientConn.MetricsRecorder(), p.Options.Target.String()
	label := shedSeries.Limit(target, tally.Labels{p.title(lowest)})
	return func() {
		shedCalls.Record(recorder, 1, target, label[0])
		p.shares.shed.calls.Add(1)
		if p.shares.shed.begun.CompareAndSwap(false, true) {
			p.Event(p.logShed)
		}
	}
}

type labels struct{ target, priority string }

type channelCount int64

func (c channelCount) Plus(other channelCount) channelCount { return c + other }

var inUseCounts tally.Board[labels, channelCount]

type shareSum struct{ percent, channels int64 }

func (s shareSum) Plus(other shareSum) shareSum {
	return shareSum{s.percent + other.percent, s.channels + other.channels}
}

var shareSums tally.Board[labels, shareSum]

type meter struct {
	config   *lbconfig.Priority
	current  labels
	register serial.Serializer // on its own goroutine, since a recorder may be waiting for an export, which calls Report

	mu         sync.Mutex // guards the fields below
	titles     []string
	unregister func()
	shares     map[labels]*childShare
	counted    map[labels]shareSum
}

func (m *meter) setShares(shares map[labels]*childShare) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for l, sum := range m.counted {
		if shares[l] == nil {
			shareSums.Add(l, shareSum{-sum.percent, -sum.channels})
			delete(m.counted, l)
		}
	}
	m.shares = shares
}

func (m *meter) meanShares() map[labels]int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	means := make(map[labels]int64)
	for l, c := range m.shares {
		sum, before := shareSum{int64(math.Round(100 * c.read().Fraction)), 1}, m.counted[l]
		shareSums.Add(l, shareSum{sum.percent - before.percent, sum.channels - before.channels})
		m.counted[l] = sum
		all := shareSums.Sum(l)
		means[l] = all.percent / all.channels
	}
	return means
}

func (p *policy) Settled(closed bool) {
	m := &p.meter
	if closed {
		p.updateGauge(labels{})
		m.setShares(nil)
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
		m.register.Enqueue(func() { m.unregister = recorder.RegisterAsyncReporter(p, inUseMetric, shareMetric) })
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
	current := labels{p.Options.Target.String(), stateattr.NoName}
	if p.inUse != "" && p.published.ConnectivityState != connectivity.TransientFailure && p.shares.outage.since.IsZero() {
		current.priority = p.title(p.takesMost())
	}
	p.updateGauge(current)
}

func (p *policy) takesMost() string {
	if p.config.Overflow && p.shares.offers {
		for _, name := range p.readyChildren() {
			if p.shares.children[name].current().Depth != share.Tripped {
				return name
			}
		}
	}
	return p.inUse
}

func (p *policy) updateGauge(current labels) {
	previous := p.meter.current
	if previous == current {
		return
	}
	if previous != (labels{}) {
		inUseCounts.Add(previous, -1)
	}
	if current != (labels{}) {
		inUseCounts.Add(current, 1)
	}
	p.meter.current = current
}

// Report implements estats.AsyncMetricReporter. It never waits for the policy's events.
func (p *policy) Report(r estats.AsyncMetricsRecorder) error {
	p.meter.mu.Lock()
	titles := slices.Clone(p.meter.titles)
	p.meter.mu.Unlock()
	target := p.Options.Target.String()
	for _, title := range titles {
		inUseMetric.Record(r, int64(inUseCounts.Sum(labels{target, title})), target, title)
	}
	for l, percent := range p.meter.meanShares() {
		shareMetric.Record(r, percent, l.target, l.priority)
	}
	return nil
}
