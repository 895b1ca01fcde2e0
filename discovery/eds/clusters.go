package eds

import (
	"sync/atomic"
	"time"

	"google.golang.org/grpc/grpclog"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/adsclient"
	"github.com/understudy-lb/understudy/internal/cds"
	"github.com/understudy-lb/understudy/internal/envoy"
	"github.com/understudy-lb/understudy/internal/printable"
	"github.com/understudy-lb/understudy/internal/serial"
)

var logger = grpclog.Component("understudy")

// clusterSource is the source for targets that begin at a Cluster resource (CDS).
type clusterSource struct {
	source
	target *discovery.Target
}

// Start implements discovery.Source.
func (s clusterSource) Start(r *discovery.Receiver) (discovery.Started, error) {
	h := &hub{source: s.source, receiver: r, parts: make(map[*partWatch]bool), noted: make(map[string]string), open: new(atomic.Pointer[hub])}
	h.open.Store(h)
	h.maker = cds.Maker{Target: s.target, EDS: func(service string) (discovery.Source, error) {
		return &part{hub: h.open, source: s.source, server: h.maker.Scope, service: service}, nil
	}}
	w, err := s.follow(r, h.needs, h.pass)
	if err != nil {
		return discovery.Started{}, err
	}
	h.watch.Store(w)
	return discovery.Started{Close: h.close, EndpointsFailed: w.endpointsFailed, Confirmed: w.confirmed}, nil
}

// hub turns the Cluster resources of a target into discovery mechanisms and passes
// ClusterLoadAssignments to the mechanisms that use EDS.
type hub struct {
	source   source
	receiver *discovery.Receiver
	maker    cds.Maker
	open     *atomic.Pointer[hub]               // points to this hub, nil once it is closed
	watch    atomic.Pointer[watch]              // nil before Start
	current  atomic.Pointer[adsclient.Snapshot] // the last snapshot that was passed on, nil if none

	events serial.Serializer // guards the fields below
	noted  map[string]string // the last warning logged for each cluster
	held   *adsclient.Snapshot
	passed bool         // whether a snapshot has been passed on
	hold   serial.Timer // passes held on when it fires
	parts  map[*partWatch]bool
}

// needs returns the resources that the known clusters require. The stream calls it.
func (h *hub) needs(known map[string]adsclient.State) adsclient.Needs {
	g := cds.Resolve(h.source.cluster, func(name string) cds.Known { return find(known[name]) })
	needs := adsclient.Needs{Clusters: g.Asked, For: g}
	for _, e := range g.List {
		switch c := g.Known[e.Name].Cluster; {
		case e.Err != nil || c == nil:
		case c.Kind == cds.EDS:
			needs.Endpoints = append(needs.Endpoints, c.Service)
		default:
			needs.Whole = true
		}
	}
	return needs
}

// find converts the state of a Cluster resource.
func find(s adsclient.State) cds.Known {
	if s.Good == nil {
		return cds.Known{Err: s.Err}
	}
	return cds.Known{Cluster: s.Good.Read.(*cds.Cluster)}
}

// holdFor is how long the first list waits for missing resources, so that calls do not fail at an
// unreachable cluster while the next one is still loading. gRFC A74 waits indefinitely. The delay
// is short because the join also waits for the first mechanism (docs/waits.md).
const holdFor = time.Second

// pass passes a snapshot on. The first snapshot waits up to holdFor until all its resources are
// known.
func (h *hub) pass(s adsclient.Snapshot) {
	h.events.Run(func() {
		if h.passed || !waits(s) {
			h.tell(s)
			return
		}
		h.held = &s
		if !h.hold.Runs() {
			h.hold.Start(&h.events, holdFor, func() { h.tell(*h.held) })
		}
	})
}

// waits reports whether the state of a needed resource is still unknown.
func waits(s adsclient.Snapshot) bool {
	for _, all := range []map[string]adsclient.State{s.Clusters, s.Endpoints} {
		for _, state := range all {
			if state == (adsclient.State{}) {
				return true
			}
		}
	}
	return false
}

// tell passes the discovery mechanisms to the receiver and the endpoints to each EDS mechanism. It
// does nothing once the hub is closed.
func (h *hub) tell(s adsclient.Snapshot) {
	if h.open.Load() == nil {
		return
	}
	h.hold.Stop()
	h.passed, h.held = true, nil
	h.current.Store(&s)
	h.maker.Scope = s.Server
	g := s.For.(*cds.Graph)
	list := h.maker.Parts(g, nil)
	h.note(g)
	h.receiver.Parts(list)
	for p := range h.parts {
		if p.server == s.Server {
			p.pass(s.Endpoints[p.service])
		}
	}
}

// note logs a warning for each cluster with ignored fields, once per distinct warning.
func (h *hub) note(g *cds.Graph) {
	for _, name := range g.Asked {
		k := g.Known[name]
		if k.Cluster == nil || len(k.Cluster.Notes) == 0 {
			continue
		}
		if text := (&envoy.Invalid{Problems: k.Cluster.Notes}).Error(); h.noted[name] != text {
			h.noted[name] = text
			logger.Warningf("eds: cluster %q: %s", name, printable.Text(text))
		}
	}
}

// close closes the watch that all mechanisms share.
func (h *hub) close() {
	h.open.Store(nil)
	h.events.Run(h.hold.Stop)
	h.watch.Load().stop()
}

// part is the source of a cluster that uses EDS. Its endpoints come from the server that sent the
// cluster. A part outlives its channel, for use by the next one, so it holds a pointer that the
// closed hub clears, and not the hub.
type part struct {
	hub     *atomic.Pointer[hub]
	source  source
	server  int
	service string
}

// Start implements discovery.Source. If the hub is closed, for example because the channel was idle
// since, the part requests its endpoints on a stream of its own.
func (p *part) Start(r *discovery.Receiver) (discovery.Started, error) {
	if h := p.hub.Load(); h != nil {
		w := &partWatch{part: p, hub: h, receiver: r}
		r.Trying("waiting for its endpoints")
		w.look()
		h.events.Run(func() {
			h.parts[w] = true
			w.look() // tell may have run before w was added
		})
		return discovery.Started{Close: w.close, EndpointsFailed: w.endpointsFailed, Confirmed: w.confirmed}, nil
	}
	s := p.source
	s.cluster = p.service
	return s.Start(r)
}

// Check implements discovery.Source. The clusterSource has already been checked.
func (*part) Check(bool) error { return nil }

// partWatch is a started part.
type partWatch struct {
	*part
	hub      *hub
	receiver *discovery.Receiver
	last     adsclient.State // used by Start, then by the hub's events
}

// look passes on the endpoints of the hub's current snapshot.
func (w *partWatch) look() {
	if s := w.hub.current.Load(); s != nil && w.server == s.Server {
		w.pass(s.Endpoints[w.service])
	}
}

// pass passes the state of the endpoints on if it has changed.
func (w *partWatch) pass(s adsclient.State) {
	if s != w.last {
		w.last = s
		passOn(w.receiver, s)
	}
}

// confirmed returns the time of the last message from the server. All parts share the hub's stream.
func (w *partWatch) confirmed() time.Time {
	if watch := w.hub.watch.Load(); watch != nil {
		return watch.confirmed()
	}
	return time.Now()
}

// endpointsFailed forwards the failure to the hub's watch.
func (w *partWatch) endpointsFailed() {
	if watch := w.hub.watch.Load(); watch != nil {
		watch.endpointsFailed()
	}
}

// close removes the part from the hub.
func (w *partWatch) close() {
	w.hub.events.Run(func() { delete(w.hub.parts, w) })
}
