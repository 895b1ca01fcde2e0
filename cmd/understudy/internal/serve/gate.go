package serve

import (
	"sync"

	cachev3 "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
)

// gate holds back requests whose responses could be wrong because some content is unknown. Clients
// treat a resource that is missing from a response as removed. If a server that starts with an
// invalid file responded, clients would drop endpoints that still work. A client that gets no
// response keeps its endpoints.
type gate struct {
	cachev3.Cache

	mu        sync.Mutex
	knowledge knowledge
	served    map[string]bool // by cluster name
	pending   map[*pendingWatch]bool
}

// knowledge is how much of the content of the files and targets is known.
type knowledge int

const (
	nothingKnown knowledge = iota // nothing is known yet
	partlyKnown                   // everything is known except files and targets that were never valid
	allKnown
)

type pendingWatch struct {
	isAllowed func() bool
	open      func() (func(), error)
	cancel    func() // cancels the watch; nil before the watch is open
}

func newGate(cache cachev3.Cache) *gate {
	return &gate{Cache: cache, served: make(map[string]bool), pending: make(map[*pendingWatch]bool)}
}

func (g *gate) CreateWatch(r *cachev3.Request, sub cachev3.Subscription, out chan cachev3.Response) (func(), error) {
	// In the state-of-the-world variant, only responses of these two types list all resources.
	listsAll := r.GetTypeUrl() == resourcev3.ListenerType || r.GetTypeUrl() == resourcev3.ClusterType
	return g.watch(
		func() bool { return g.allows(listsAll, r.GetResponseNonce() != "", sub) },
		func() (func(), error) { return g.Cache.CreateWatch(r, sub, out) })
}

// CreateDeltaWatch implements cachev3.Cache. In the incremental variant, each response lists the
// resources that were removed, whatever their type.
func (g *gate) CreateDeltaWatch(r *cachev3.DeltaRequest, sub cachev3.Subscription, out chan cachev3.DeltaResponse) (func(), error) {
	return g.watch(
		func() bool { return g.allows(true, r.GetResponseNonce() != "", sub) },
		func() (func(), error) { return g.Cache.CreateDeltaWatch(r, sub, out) })
}

// allows reports whether a response may be sent now. reportsMissing means that the client treats
// resources that are missing from the response as removed. If some content is unknown, such a
// response is sent only if all requested resources are served and, for a wildcard request, only if
// the client has received a response on this stream before.
func (g *gate) allows(reportsMissing, answered bool, sub cachev3.Subscription) bool {
	if g.knowledge != partlyKnown || !reportsMissing {
		return g.knowledge != nothingKnown
	}
	for name := range sub.SubscribedResources() {
		if !g.served[name] {
			return false
		}
	}
	return !sub.IsWildcard() || answered
}

func (g *gate) watch(isAllowed func() bool, open func() (func(), error)) (cancel func(), err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if isAllowed() {
		return open()
	}
	h := &pendingWatch{isAllowed: isAllowed, open: open}
	g.pending[h] = true
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.pending, h)
		if h.cancel != nil {
			h.cancel()
		}
	}, nil
}

// update records how much is known and which clusters are served. It then opens the pending watches
// that are now allowed.
func (g *gate) update(known knowledge, updated []*clusterConfig, removed []string) (err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.knowledge = known
	for _, c := range updated {
		g.served[c.name()] = true
	}
	for _, name := range removed {
		delete(g.served, name)
	}
	for h := range g.pending {
		if !h.isAllowed() {
			continue
		}
		delete(g.pending, h)
		var openErr error
		if h.cancel, openErr = h.open(); openErr != nil {
			err = openErr
		}
	}
	return err
}

func (g *gate) isComplete() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.knowledge == allKnown
}
