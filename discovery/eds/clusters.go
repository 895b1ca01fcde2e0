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

// clusterSource is the source of a target that requests Clusters (CDS).
type clusterSource struct {
	source
	target *discovery.Target
}

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

// hub receives the resources of a target with CDS. It passes the list of discovery mechanisms to
// the target's receiver, and endpoints to those mechanisms that use EDS.
type hub struct {
	source   source
	receiver *discovery.Receiver
	maker    cds.Maker
	open     *atomic.Pointer[hub] // shared with the parts, which may outlive the hub; holds nil after close
	watch    atomic.Pointer[watch]
	current  atomic.Pointer[adsclient.Snapshot]

	events serial.Serializer // guards the fields below
	noted  map[string]string
	held   *adsclient.Snapshot
	passed bool
	hold   serial.Timer // when it fires, tell is called with held
	parts  map[*partWatch]bool
}

// needs returns the resources to subscribe to, according to the clusters that are known so far.
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

func find(s adsclient.State) cds.Known {
	if s.Good == nil {
		return cds.Known{Err: s.Err}
	}
	return cds.Known{Cluster: s.Good.Read.(*cds.Cluster)}
}

// holdFor limits the delay of the first list of discovery mechanisms while resources are missing.
// Without the delay, calls might fail at an unreachable cluster while the next one is loading. The
// delay is short, because package join waits for the first mechanism anyway (docs/waits.md). gRFC
// A74 has no limit.
const holdFor = time.Second

// pass passes a snapshot to the receiver. While resources are missing, it delays the first one for
// up to holdFor.
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

// waits reports whether a requested resource is missing from s.
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

// tell passes the discovery mechanisms and the endpoints of s to their receivers, unless the hub is
// closed.
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

// note logs a warning about each cluster with ignored fields, if the warning has changed.
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

func (h *hub) close() {
	h.open.Store(nil)
	h.events.Run(h.hold.Stop)
	h.watch.Load().stop()
}

// part is the source of the endpoints of one cluster. The endpoints come from the server that sent
// the cluster. A part may outlive its channel. It therefore refers to the hub only by a pointer,
// which close sets to nil.
type part struct {
	hub     *atomic.Pointer[hub]
	source  source
	server  int
	service string
}

// Start implements discovery.Source. If the hub is closed, the part itself subscribes to its
// endpoints.
func (p *part) Start(r *discovery.Receiver) (discovery.Started, error) {
	if h := p.hub.Load(); h != nil {
		w := &partWatch{part: p, hub: h, receiver: r}
		r.Trying("waiting for its endpoints")
		w.look()
		h.events.Run(func() {
			h.parts[w] = true
			w.look() // the hub may have received a snapshot before w was registered
		})
		return discovery.Started{Close: w.close, EndpointsFailed: w.endpointsFailed, Confirmed: w.confirmed}, nil
	}
	s := p.source
	s.cluster = p.service
	return s.Start(r)
}

// Check implements discovery.Source. It returns nil, because the clusterSource checks the options.
func (*part) Check(bool) error { return nil }

type partWatch struct {
	*part
	hub      *hub
	receiver *discovery.Receiver
	last     adsclient.State // set in Start, and later only in the hub's events
}

func (w *partWatch) look() {
	if s := w.hub.current.Load(); s != nil && w.server == s.Server {
		w.pass(s.Endpoints[w.service])
	}
}

func (w *partWatch) pass(s adsclient.State) {
	if s != w.last {
		w.last = s
		passOn(w.receiver, s)
	}
}

// confirmed returns the time at which the server in use last sent a message.
func (w *partWatch) confirmed() time.Time {
	if watch := w.hub.watch.Load(); watch != nil {
		return watch.confirmed()
	}
	return time.Now()
}

func (w *partWatch) endpointsFailed() {
	if watch := w.hub.watch.Load(); watch != nil {
		watch.endpointsFailed()
	}
}

func (w *partWatch) close() {
	w.hub.events.Run(func() { delete(w.hub.parts, w) })
}
