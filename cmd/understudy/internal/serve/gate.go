package serve

import (
	"sync"

	cachev3 "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
)

// gate holds back requests whose responses could be wrong because some content is unknown. Clients
// treat a resource that is missing from a response as removed. If a server that starts with a
// broken file answered, clients would drop endpoints that still work. Clients without a response
// keep their endpoints.
type gate struct {
	cachev3.Cache

	mu     sync.Mutex
	sight  sight
	served map[string]bool // by cluster name
	held   map[*held]bool
}

// sight is how much of the content of the files and targets is known.
type sight int

const (
	blind   sight = iota // nothing is known yet
	partial              // everything is known except files and targets that were never valid
	full
)

type held struct {
	let    func() bool
	open   func() (func(), error)
	cancel func() // cancels the watch; nil before the watch is open
}

func newGate(to cachev3.Cache) *gate {
	return &gate{Cache: to, served: make(map[string]bool), held: make(map[*held]bool)}
}

func (g *gate) CreateWatch(r *cachev3.Request, sub cachev3.Subscription, out chan cachev3.Response) (func(), error) {
	// In the state-of-the-world variant, only responses of these two types list all resources.
	whole := r.GetTypeUrl() == resourcev3.ListenerType || r.GetTypeUrl() == resourcev3.ClusterType
	return g.watch(
		func() bool { return g.lets(whole, r.GetResponseNonce() != "", sub) },
		func() (func(), error) { return g.Cache.CreateWatch(r, sub, out) })
}

// CreateDeltaWatch implements cachev3.Cache. In the incremental variant, each response lists the
// resources that were removed, whatever their type.
func (g *gate) CreateDeltaWatch(r *cachev3.DeltaRequest, sub cachev3.Subscription, out chan cachev3.DeltaResponse) (func(), error) {
	return g.watch(
		func() bool { return g.lets(true, r.GetResponseNonce() != "", sub) },
		func() (func(), error) { return g.Cache.CreateDeltaWatch(r, sub, out) })
}

// lets reports whether a request may be answered now. whole means that the response would report
// missing resources as removed. Then a wildcard request is answered only if the client has received
// all resources on this stream before.
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

// update records how much is known and which clusters are served. It then answers the held requests
// that may now be answered.
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

func (g *gate) complete() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.sight == full
}
