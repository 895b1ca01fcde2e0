package eds

import (
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/grpclog"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/envoy/adsclient"
	"github.com/understudy-lb/understudy/internal/envoy/cds"
	"github.com/understudy-lb/understudy/internal/lb/serial"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

var logger = grpclog.Component("understudy")

// clusterSource is the source of a target with cds=true, so it also requests Clusters.
type clusterSource struct {
	source
	target *discovery.Target
}

func (s clusterSource) Start(r *discovery.Receiver) (discovery.Started, error) {
	h := s.newWatch(r)
	started, err := h.open()
	started.Close = h.close
	return started, err
}

func (s clusterSource) newWatch(r *discovery.Receiver) *clusterWatch {
	h := &clusterWatch{receiver: r, endpoints: make(map[*endpointsWatch]bool), ifOpen: new(atomic.Pointer[clusterWatch])}
	h.watch = watch{source: s.source, receiver: r.With(discovery.Hooks{Unconfirmed: h.unconfirmed}), needs: h.needs, onSnapshot: h.handleSnapshot}
	h.ifOpen.Store(h)
	h.maker = cds.Maker{Target: s.target, EDS: func(service string) (discovery.Source, error) {
		endpoints := s.source
		endpoints.cluster = service
		return &clusterEndpoints{endpoints, h.ifOpen, h.maker.Scope}, nil
	}}
	return h
}

// clusterWatch subscribes to the resources of a target with cds=true. It turns the clusters into
// the channel's list of discovery mechanisms, and passes endpoints to the mechanisms that use EDS.
type clusterWatch struct {
	watch
	receiver *discovery.Receiver           // unlike that of watch, it doesn't queue outages behind snapshots
	ifOpen   *atomic.Pointer[clusterWatch] // this watch, or nil after close; shared with clusterEndpoints, which may outlive it

	events     serial.Serializer // guards the fields below
	snapshot   *adsclient.Snapshot
	hasSent    bool
	delayTimer serial.Timer // delays the first snapshot
	maker      cds.Maker
	lastNotes  string
	endpoints  map[*endpointsWatch]bool
}

// needs returns the resources to subscribe to, given the clusters we know so far.
func (h *clusterWatch) needs(known map[string]adsclient.State) adsclient.Needs {
	g := cds.Resolve(h.cluster, func(name string) cds.Known { return knownCluster(known[name]) })
	needs := adsclient.Needs{Clusters: g.Asked, For: g}
	for _, e := range g.List {
		switch {
		case e.Err != nil || e.Waiting:
		case e.Cluster.Kind == cds.EDS:
			needs.Endpoints = append(needs.Endpoints, e.Cluster.Service)
		default:
			needs.Whole = true
		}
	}
	return needs
}

func knownCluster(s adsclient.State) cds.Known {
	if s.Good == nil {
		return cds.Known{Err: s.Err}
	}
	return cds.Known{Cluster: s.Good.Read.(*cds.Cluster)}
}

// If resources are missing, we hold back the first list of discovery mechanisms for up to maxDelay.
// Otherwise, calls might fail at an unreachable cluster while the next cluster is still loading. We
// don't need a longer delay, because package join waits for the first mechanism anyway
// (docs/waits.md). gRFC A74 has no limit.
const maxDelay = time.Second

func (h *clusterWatch) handleSnapshot(s adsclient.Snapshot) {
	h.events.Run(func() {
		isMissing := func(states map[string]adsclient.State) bool {
			return slices.Contains(slices.Collect(maps.Values(states)), adsclient.State{})
		}
		switch h.snapshot = &s; {
		case h.hasSent || !isMissing(s.Clusters) && !isMissing(s.Endpoints):
			h.send()
		case !h.delayTimer.Runs():
			h.delayTimer.Start(&h.events, maxDelay, h.send)
		}
	})
}

// unconfirmed queues an outage behind the snapshots that arrived before it. If we reported it
// first, the list in such a snapshot would end the outage (see discovery.Receiver).
func (h *clusterWatch) unconfirmed(err error, since time.Time) {
	h.events.Run(func() { h.receiver.Unconfirmed(err, since) })
}

func (h *clusterWatch) send() {
	if h.ifOpen.Load() == nil {
		return
	}
	h.delayTimer.Stop()
	h.hasSent = true
	h.maker.Scope = h.snapshot.Server
	g := h.snapshot.For.(*cds.Graph)
	if g.Notes != nil && g.Notes.Error() != h.lastNotes {
		h.lastNotes = g.Notes.Error()
		logger.Warning("eds: " + printable.Text(h.lastNotes))
	}
	h.receiver.Mechanisms(h.maker.Mechanisms(g))
	for w := range h.endpoints {
		w.update(h.snapshot)
	}
}

func (h *clusterWatch) close() {
	h.ifOpen.Store(nil)
	h.events.Run(h.delayTimer.Stop)
	h.stop()
}

// clusterEndpoints is the source of a cluster's endpoints, which come from the same server as the
// cluster. It may outlive its channel, so it gets at the clusterWatch through a pointer that close
// sets to nil.
type clusterEndpoints struct {
	source // subscribes to the endpoints itself, in case the clusterWatch is closed
	owner  *atomic.Pointer[clusterWatch]
	server int
}

func (p *clusterEndpoints) Start(r *discovery.Receiver) (discovery.Started, error) {
	h := p.owner.Load()
	if h == nil {
		return p.source.Start(r)
	}
	r.Trying("waiting for its endpoints")
	w := &endpointsWatch{clusterEndpoints: p, receiver: r}
	h.events.Do(func() {
		h.endpoints[w] = true
		w.update(h.snapshot)
	})
	end := func() { h.events.Run(func() { delete(h.endpoints, w) }) }
	return discovery.Started{Close: end, EndpointsFailed: h.endpointsFailed, Confirmed: h.confirmed}, nil
}

type endpointsWatch struct {
	*clusterEndpoints
	receiver  *discovery.Receiver
	lastState adsclient.State
}

func (w *endpointsWatch) update(s *adsclient.Snapshot) {
	if state := s.Endpoints[w.cluster]; w.server == s.Server && state != w.lastState {
		w.lastState = state
		sendState(w.receiver, state)
	}
}
