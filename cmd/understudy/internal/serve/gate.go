package serve

import (
	"sync"

	cachev3 "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
)

// gate holds back requests whose responses could be wrong because some content is unknown. Clients
// treat a resource that is missing from a response as removed: a server that starts with a broken
// file would remove good endpoints that clients have from its predecessor. Clients that get no
// response keep their endpoints.
type gate struct {
	cachev3.Cache

	mu     sync.Mutex
	sight  sight
	served map[string]bool // clusters, by name
	held   map[*held]bool
}

// sight is how much of the content is known.
type sight int

const (
	blind   sight = iota // nothing so far
	partial              // all except files that were never valid
	full
)

// held is a request that is held back.
type held struct {
	let    func() bool // reports whether the request may be answered now
	open   func() (func(), error)
	cancel func() // nil while the request is held, or if there is nothing to cancel
}

func newGate(to cachev3.Cache) *gate {
	return &gate{Cache: to, served: make(map[string]bool), held: make(map[*held]bool)}
}

// CreateWatch implements cachev3.Cache.
func (g *gate) CreateWatch(r *cachev3.Request, sub cachev3.Subscription, out chan cachev3.Response) (func(), error) {
	// In this variant only these two types are complete lists.
	whole := r.GetTypeUrl() == resourcev3.ListenerType || r.GetTypeUrl() == resourcev3.ClusterType
	return g.watch(
		func() bool { return g.lets(whole, r.GetResponseNonce() != "", sub) },
		func() (func(), error) { return g.Cache.CreateWatch(r, sub, out) })
}

// CreateDeltaWatch implements cachev3.Cache. In this variant a response of any type names removed
// resources.
func (g *gate) CreateDeltaWatch(r *cachev3.DeltaRequest, sub cachev3.Subscription, out chan cachev3.DeltaResponse) (func(), error) {
	return g.watch(
		func() bool { return g.lets(true, r.GetResponseNonce() != "", sub) },
		func() (func(), error) { return g.Cache.CreateDeltaWatch(r, sub, out) })
}

// lets reports whether a request is answered. A request for everything is answered if the client
// has received everything on this stream.
func (g *gate) lets(whole, answered bool, sub cachev3.Subscription) bool {
	if g.sight != partial || !whole {
		return g.sight != blind
	}
	for name := range sub.SubscribedResources() {
		if !g.served[name] {
			return false
		}
	}
	return !sub.IsWildcard() || answered
}

// watch opens a watch as soon as let allows it.
func (g *gate) watch(let func() bool, open func() (func(), error)) (cancel func(), err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if let() {
		return open()
	}
	h := &held{let: let, open: open}
	g.held[h] = true
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.held, h)
		if h.cancel != nil {
			h.cancel()
		}
	}, nil
}

// update sets how much is known and which clusters are served, and answers the requests that can
// now be answered.
func (g *gate) update(now sight, updated []*given, removed []string) (err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sight = now
	for _, one := range updated {
		g.served[one.name()] = true
	}
	for _, name := range removed {
		delete(g.served, name)
	}
	for h := range g.held {
		if !h.let() {
			continue
		}
		delete(g.held, h)
		var problem error
		if h.cancel, problem = h.open(); problem != nil {
			err = problem
		}
	}
	return err
}

// complete reports whether everything is known, so that no request is held back.
func (g *gate) complete() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.sight == full
}
