package eds

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/grpc/grpclog"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/discovery/internal/cds"
	"github.com/understudy-lb/understudy/internal/adsclient"
	"github.com/understudy-lb/understudy/internal/core/clusters"
	"github.com/understudy-lb/understudy/internal/printable"
	"github.com/understudy-lb/understudy/topology"
)

var logger = grpclog.Component("understudy")

// clusterSource finds out where the endpoints of a cluster come from, by CDS.
type clusterSource struct {
	source
	target *discovery.Target
}

// Start implements discovery.Source.
func (s clusterSource) Start(r discovery.Receiver) (discovery.Watch, error) {
	h := &hub{source: s.source, receiver: r, parts: make(map[*partWatch]bool), noted: make(map[string]string), open: new(atomic.Pointer[hub])}
	h.open.Store(h)
	h.maker = cds.Maker{Target: s.target, EDS: func(service string) (discovery.Source, error) {
		return &part{hub: h.open, source: s.source, server: h.maker.Scope, service: service}, nil
	}}
	w, err := s.follow(r, h.needs, h.pass)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	h.watch = w
	h.mu.Unlock()
	return &hubWatch{w, h}, nil
}

// hub tells of the parts of a cluster, and tells those that need EDS their endpoints.
type hub struct {
	source   source
	receiver discovery.Receiver
	maker    cds.Maker
	open     *atomic.Pointer[hub] // to the hub itself, until it is closed
	noted    map[string]string    // what has no effect, by cluster, as was logged last
	read     reads

	passing sync.Mutex // one snapshot at a time is passed on
	held    *adsclient.Snapshot
	passed  bool        // one was
	timer   *time.Timer // until held is passed on as it is

	mu      sync.Mutex
	watch   *watch // nil until it is started
	current adsclient.Snapshot
	parts   map[*partWatch]bool
	closed  bool
}

// needs says which resources are needed, as far as clusters are known. It is called on the
// stack of the stream.
func (h *hub) needs(known map[string]adsclient.State) adsclient.Needs {
	var needs adsclient.Needs
	found := make(map[string]cds.Known)
	list, asked := clusters.Resolve(h.source.cluster, func(name string) clusters.Cluster {
		k := h.find(known[name])
		found[name] = k
		if k.Cluster == nil {
			return clusters.Cluster{Err: k.Err, Waiting: k.Err == nil}
		}
		return clusters.Cluster{Children: k.Cluster.Children}
	})
	needs.Clusters = asked
	for _, e := range list {
		switch c := found[e.Name].Cluster; {
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
func (h *hub) find(s adsclient.State) cds.Known {
	if s.Message == nil {
		return cds.Known{Err: s.Err}
	}
	c, err := h.read.of(s.Message.(*clusterv3.Cluster))
	return cds.Known{Cluster: c, Err: err}
}

// holdFor is how long the first list waits for what is not known yet, as A74 asks for
// without end: calls would fail at a cluster that is down while the next one is on its
// way. It is short, because the feed waits for the first part as well.
const holdFor = time.Second

// pass passes on what is known. At first it waits until all of it is.
func (h *hub) pass(s adsclient.Snapshot) {
	h.passing.Lock()
	defer h.passing.Unlock()
	if h.passed || !waits(s) {
		h.tell(s)
		return
	}
	h.held = &s
	if h.timer == nil {
		h.timer = time.AfterFunc(holdFor, h.lose)
	}
}

// lose loses patience.
func (h *hub) lose() {
	h.passing.Lock()
	defer h.passing.Unlock()
	if !h.passed && !h.isClosed() {
		h.tell(*h.held)
	}
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

// tell tells of the parts, and those their endpoints.
func (h *hub) tell(s adsclient.Snapshot) {
	h.passed, h.held = true, nil
	h.mu.Lock()
	h.current = s
	h.mu.Unlock()
	h.maker.Scope = s.Server
	list, asked := h.maker.Parts(h.source.cluster, func(name string) cds.Known { return h.find(s.Clusters[name]) }, nil)
	h.note(s, asked)
	h.receiver.Parts(list)
	h.mu.Lock()
	parts := slices.Collect(maps.Keys(h.parts))
	h.mu.Unlock()
	for _, p := range parts {
		if p.server == s.Server {
			p.pass(s.Endpoints[p.service])
		}
	}
}

func (h *hub) isClosed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closed
}

// note logs what has no effect in these clusters, once.
func (h *hub) note(s adsclient.Snapshot, names []string) {
	for _, name := range names {
		k := h.find(s.Clusters[name])
		if k.Cluster == nil || len(k.Cluster.Notes) == 0 {
			continue
		}
		if text := (&topology.Invalid{Problems: k.Cluster.Notes}).Error(); h.noted[name] != text {
			h.noted[name] = text
			logger.Warningf("eds: cluster %q: %s", name, printable.Text(text))
		}
	}
}

// hubWatch is a hub at work.
type hubWatch struct {
	*watch
	hub *hub
}

// Close implements discovery.Watch.
func (w *hubWatch) Close() {
	w.hub.mu.Lock()
	w.hub.closed = true
	w.hub.mu.Unlock()
	w.hub.open.Store(nil)
	w.watch.Close()
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
func (p *part) Start(r discovery.Receiver) (discovery.Watch, error) {
	if h := p.hub.Load(); h != nil {
		w := &partWatch{part: p, hub: h, receiver: r}
		if now, ok := h.enter(w); ok {
			w.pass(now)
			return w, nil
		}
	}
	s := p.source
	s.cluster = p.service
	return s.Start(r)
}

// enter takes in a part at work, unless the hub is closed. It returns what is known of its
// endpoints.
func (h *hub) enter(w *partWatch) (now adsclient.State, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return now, false
	}
	h.parts[w] = true
	return h.current.Endpoints[w.service], true
}

// partWatch is a part at work.
type partWatch struct {
	*part
	hub      *hub
	receiver discovery.Receiver

	mu   sync.Mutex
	last adsclient.State
}

// pass passes on what is known of the endpoints, if that is news.
func (w *partWatch) pass(s adsclient.State) {
	w.mu.Lock()
	news := s != w.last
	w.last = s
	w.mu.Unlock()
	if news {
		passOn(w.receiver, s)
	}
}

// Confirmed returns when the server was last heard, as that of the whole does: a part has no
// stream of its own.
func (w *partWatch) Confirmed() time.Time {
	w.hub.mu.Lock()
	watch := w.hub.watch
	w.hub.mu.Unlock()
	if watch == nil {
		return time.Now()
	}
	return watch.Confirmed()
}

// Close implements discovery.Watch.
func (w *partWatch) Close() {
	w.hub.mu.Lock()
	defer w.hub.mu.Unlock()
	delete(w.hub.parts, w)
}

// reads keeps what was read of the last clusters, since each is looked at for every change
// of another. It is safe for concurrent use.
type reads struct {
	mu   sync.Mutex
	kept map[*clusterv3.Cluster]*cds.Cluster
}

func (r *reads) of(c *clusterv3.Cluster) (*cds.Cluster, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if read, ok := r.kept[c]; ok {
		return read, nil
	}
	read, err := cds.Read(c)
	if err != nil {
		return nil, err
	}
	if r.kept == nil || len(r.kept) > 2*clusters.MaxClusters {
		r.kept = make(map[*clusterv3.Cluster]*cds.Cluster)
	}
	r.kept[c] = read
	return read, nil
}
