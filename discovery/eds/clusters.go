package eds

import (
	"sync/atomic"
	"time"

	"google.golang.org/grpc/grpclog"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/envoy/adsclient"
	"github.com/understudy-lb/understudy/internal/envoy/cds"
	"github.com/understudy-lb/understudy/internal/envoy/messages"
	"github.com/understudy-lb/understudy/internal/lb/serial"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

var logger = grpclog.Component("understudy")

// clusterSource is the source of a target for which Clusters are requested (CDS).
type clusterSource struct {
	source
	target *discovery.Target
}

func (s clusterSource) Start(r *discovery.Receiver) (discovery.Started, error) {
	h := s.newWatch(r)
	w, err := s.follow(r.With(discovery.Hooks{Unconfirmed: h.unconfirmed}), h.needs, h.handleSnapshot)
	if err != nil {
		return discovery.Started{}, err
	}
	h.watch.Store(w)
	return discovery.Started{Close: h.close, EndpointsFailed: w.endpointsFailed, Confirmed: w.confirmed}, nil
}

func (s clusterSource) newWatch(r *discovery.Receiver) *clusterWatch {
	h := &clusterWatch{source: s.source, receiver: r, endpointWatches: make(map[*endpointsWatch]bool), lastNotes: make(map[string]string), openWatch: new(atomic.Pointer[clusterWatch])}
	h.openWatch.Store(h)
	h.mechanismMaker = cds.Maker{Target: s.target, EDS: func(service string) (discovery.Source, error) {
		return &clusterEndpoints{owner: h.openWatch, source: s.source, server: h.mechanismMaker.Scope, service: service}, nil
	}}
	return h
}

// clusterWatch receives the resources of a target with CDS. It passes the list of discovery
// mechanisms to the target's receiver, and endpoints to the mechanisms that use EDS.
type clusterWatch struct {
	source         source
	receiver       *discovery.Receiver
	mechanismMaker cds.Maker
	openWatch      *atomic.Pointer[clusterWatch] // shared with each clusterEndpoints, which may outlive this watch; nil after close
	watch          atomic.Pointer[watch]
	lastSnapshot   atomic.Pointer[adsclient.Snapshot]

	events          serial.Serializer // guards the fields below
	lastNotes       map[string]string
	pendingSnapshot *adsclient.Snapshot
	hasSent         bool
	delayTimer      serial.Timer // sends pendingSnapshot
	endpointWatches map[*endpointsWatch]bool
}

// needs returns the resources to subscribe to, according to the clusters that are known so far.
func (h *clusterWatch) needs(known map[string]adsclient.State) adsclient.Needs {
	g := cds.Resolve(h.source.cluster, func(name string) cds.Known { return knownCluster(known[name]) })
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

// maxDelay limits the delay of the first list of discovery mechanisms while resources are missing.
// Without the delay, calls might fail at an unreachable cluster while the next cluster is still
// loading. The delay is short, because package join waits for the first mechanism anyway
// (docs/waits.md). gRFC A74 has no limit.
const maxDelay = time.Second

// handleSnapshot sends a snapshot. While resources are missing, it delays the first snapshot for at
// most maxDelay.
func (h *clusterWatch) handleSnapshot(s adsclient.Snapshot) {
	h.events.Run(func() {
		if h.hasSent || !isIncomplete(s) {
			h.send(s)
			return
		}
		h.pendingSnapshot = &s
		if !h.delayTimer.Runs() {
			h.delayTimer.Start(&h.events, maxDelay, func() { h.send(*h.pendingSnapshot) })
		}
	})
}

// unconfirmed reports an outage after the snapshots that arrived before it. In the opposite order,
// their list would end the outage (see discovery.Receiver).
func (h *clusterWatch) unconfirmed(err error, since time.Time) {
	h.events.Run(func() { h.receiver.Unconfirmed(err, since) })
}

// isIncomplete reports whether a requested resource is missing from s.
func isIncomplete(s adsclient.Snapshot) bool {
	for _, states := range []map[string]adsclient.State{s.Clusters, s.Endpoints} {
		for _, state := range states {
			if state == (adsclient.State{}) {
				return true
			}
		}
	}
	return false
}

// send passes the discovery mechanisms and the endpoints of s to their receivers, unless the watch
// is closed.
func (h *clusterWatch) send(s adsclient.Snapshot) {
	if h.openWatch.Load() == nil {
		return
	}
	h.delayTimer.Stop()
	h.hasSent, h.pendingSnapshot = true, nil
	h.lastSnapshot.Store(&s)
	h.mechanismMaker.Scope = s.Server
	g := s.For.(*cds.Graph)
	list := h.mechanismMaker.Mechanisms(g)
	h.logNotes(g)
	h.receiver.Mechanisms(list)
	for p := range h.endpointWatches {
		if p.server == s.Server {
			p.handleState(s.Endpoints[p.service])
		}
	}
}

// logNotes logs a warning about each cluster with ignored fields, unless the same warning was
// logged last.
func (h *clusterWatch) logNotes(g *cds.Graph) {
	for _, name := range g.Asked {
		k := g.Known[name]
		if k.Cluster == nil || len(k.Cluster.Notes) == 0 {
			continue
		}
		if text := (&messages.Invalid{Problems: k.Cluster.Notes}).Error(); h.lastNotes[name] != text {
			h.lastNotes[name] = text
			logger.Warningf("eds: cluster %q: %s", name, printable.Text(text))
		}
	}
}

func (h *clusterWatch) close() {
	h.openWatch.Store(nil)
	h.events.Run(h.delayTimer.Stop)
	h.watch.Load().stop()
}

// clusterEndpoints is the source of the endpoints of one cluster. The endpoints come from the
// server that sent the cluster. The source may outlive its channel. Therefore, it has only a
// pointer to a pointer to the clusterWatch, which close sets to nil.
type clusterEndpoints struct {
	owner   *atomic.Pointer[clusterWatch]
	source  source
	server  int
	service string
}

// Start implements discovery.Source. If the clusterWatch is closed, Start subscribes to the
// endpoints itself.
func (p *clusterEndpoints) Start(r *discovery.Receiver) (discovery.Started, error) {
	if h := p.owner.Load(); h != nil {
		w := &endpointsWatch{clusterEndpoints: p, owner: h, receiver: r}
		r.Trying("waiting for its endpoints")
		w.update()
		h.events.Run(func() {
			h.endpointWatches[w] = true
			w.update() // a snapshot may have arrived before w was registered
		})
		return discovery.Started{Close: w.close, EndpointsFailed: w.endpointsFailed, Confirmed: w.confirmed}, nil
	}
	s := p.source
	s.cluster = p.service
	return s.Start(r)
}

// Check implements discovery.Source. It returns nil, because the clusterSource checks the options.
func (*clusterEndpoints) Check(bool) error { return nil }

type endpointsWatch struct {
	*clusterEndpoints
	owner     *clusterWatch
	receiver  *discovery.Receiver
	lastState adsclient.State // used by Start, and afterwards only in the events of the clusterWatch
}

func (w *endpointsWatch) update() {
	if s := w.owner.lastSnapshot.Load(); s != nil && w.server == s.Server {
		w.handleState(s.Endpoints[w.service])
	}
}

func (w *endpointsWatch) handleState(s adsclient.State) {
	if s != w.lastState {
		w.lastState = s
		sendState(w.receiver, s)
	}
}

// confirmed returns the time at which the current server last sent a message.
func (w *endpointsWatch) confirmed() time.Time {
	if watch := w.owner.watch.Load(); watch != nil {
		return watch.confirmed()
	}
	return time.Now()
}

func (w *endpointsWatch) endpointsFailed() {
	if watch := w.owner.watch.Load(); watch != nil {
		watch.endpointsFailed()
	}
}

func (w *endpointsWatch) close() {
	w.owner.events.Run(func() { delete(w.owner.endpointWatches, w) })
}
