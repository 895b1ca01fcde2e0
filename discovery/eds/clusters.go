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

// clusterSource finds out where the endpoints of a cluster come from, by CDS.
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

// hub tells of the parts of a cluster, and tells those that need EDS their endpoints.
type hub struct {
	source   source
	receiver *discovery.Receiver
	maker    cds.Maker
	open     *atomic.Pointer[hub]               // to the hub itself, until it is closed
	watch    atomic.Pointer[watch]              // nil until it is started
	current  atomic.Pointer[adsclient.Snapshot] // that was told last, nil for none

	events serial.Serializer // guards what follows
	noted  map[string]string // what has no effect, by cluster, as was logged last
	held   *adsclient.Snapshot
	passed bool         // a snapshot was
	hold   serial.Timer // until held is passed on as it is
	parts  map[*partWatch]bool
}

// needs says which resources are needed, as far as clusters are known. It is called on the
// stack of the stream.
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

// find returns what is known of a cluster.
func find(s adsclient.State) cds.Known {
	if s.Good == nil {
		return cds.Known{Err: s.Err}
	}
	return cds.Known{Cluster: s.Good.Read.(*cds.Cluster)}
}

// holdFor is how long the first list waits for what is not known yet, as A74 asks for
// without end: calls would fail at a cluster that is down while the next one is on its
// way. It is short, because the join waits for the first part as well
// (docs/waits.md).
const holdFor = time.Second

// pass passes on what is known. At first it waits until all of it is.
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

// waits returns whether something is needed of which nothing is known.
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

// tell tells of the parts, and those their endpoints, unless the hub is closed.
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

// note logs what has no effect in these clusters, once.
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

// close ends the watch of all parts.
func (h *hub) close() {
	h.open.Store(nil)
	h.events.Run(h.hold.Stop)
	h.watch.Load().stop()
}

// part is the source of a cluster whose endpoints come by EDS. They are those of the
// server that the clusters come from. Parts are kept for the channel after this one, so they
// do not hold the hub, which has all that belongs to this one.
type part struct {
	hub     *atomic.Pointer[hub]
	source  source
	server  int
	service string
}

// Start implements discovery.Source. Where the hub is closed, as that of a channel which
// was idle since, the part is on its own.
func (p *part) Start(r *discovery.Receiver) (discovery.Started, error) {
	if h := p.hub.Load(); h != nil {
		w := &partWatch{part: p, hub: h, receiver: r}
		r.Trying("waiting for its endpoints")
		w.look()
		h.events.Run(func() {
			h.parts[w] = true
			w.look() // once more: it was not among the parts that were told
		})
		return discovery.Started{Close: w.close, EndpointsFailed: w.endpointsFailed, Confirmed: w.confirmed}, nil
	}
	s := p.source
	s.cluster = p.service
	return s.Start(r)
}

// Check implements discovery.Source. The whole was checked.
func (*part) Check(bool) error { return nil }

// partWatch is a part at work.
type partWatch struct {
	*part
	hub      *hub
	receiver *discovery.Receiver
	last     adsclient.State // used by Start, and then in events of the hub
}

// look passes on what the hub has told.
func (w *partWatch) look() {
	if s := w.hub.current.Load(); s != nil && w.server == s.Server {
		w.pass(s.Endpoints[w.service])
	}
}

// pass passes on what is known of the endpoints, if that is news.
func (w *partWatch) pass(s adsclient.State) {
	if s != w.last {
		w.last = s
		passOn(w.receiver, s)
	}
}

// confirmed returns when the server was last heard. A part has no stream of its own.
func (w *partWatch) confirmed() time.Time {
	if watch := w.hub.watch.Load(); watch != nil {
		return watch.confirmed()
	}
	return time.Now()
}

// endpointsFailed passes it on to the whole.
func (w *partWatch) endpointsFailed() {
	if watch := w.hub.watch.Load(); watch != nil {
		watch.endpointsFailed()
	}
}

// close takes the part out of the hub.
func (w *partWatch) close() {
	w.hub.events.Run(func() { delete(w.hub.parts, w) })
}
