package sim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery/failover"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

// names is the source of a failover: target whose entries are names of a custom scheme. It's also
// the resolver builder for that scheme.
type names struct {
	mu            sync.Mutex
	addresses     map[string][]string
	lastAddresses [][]string // like addresses, but kept while a name has none
	failing       bool
	watchers      map[*nameResolver]bool
	firstIndex    int
	count         int
	emptySince    time.Time // zero if all entries have addresses
	wasEmpty      bool      // at some point, there was an entry without addresses
}

// newNames numbers the names from first.
func newNames(truth EndpointSet, first int) *names {
	n := &names{firstIndex: first, addresses: make(map[string][]string), watchers: make(map[*nameResolver]bool), lastAddresses: make([][]string, len(truth)), count: len(truth)}
	n.set(truth)
	return n
}

func (n *names) set(truth EndpointSet) {
	empty := false
	for i := range n.count {
		var tier Tier
		if i < len(truth) {
			tier = truth[i]
		}
		n.addresses[n.entryName(i)] = tier.Serving()
		if len(tier.Serving()) > 0 {
			n.lastAddresses[i] = tier.Serving()
		} else {
			empty = true
		}
	}
	switch {
	case !empty:
		n.emptySince = time.Time{}
	case n.emptySince.IsZero():
		n.emptySince, n.wasEmpty = time.Now(), true
	}
}

func (n *names) entryName(i int) string { return "p" + strconv.Itoa(n.firstIndex+i) }

func (n *names) KeepsEmptyPriorities() bool { return true }

func (n *names) Target() string {
	entries := make([]string, n.count)
	for i := range entries {
		entries[i] = url.PathEscape("sim:///" + n.entryName(i))
	}
	return "failover:///" + strings.Join(entries, ",")
}

func (n *names) Options() []given.Option {
	return []given.Option{given.Sources(failover.WithResolvers(n))}
}

// Visible has no localities or weights, since names don't have any. The number of entries is fixed.
// If a name has no addresses, its entry keeps the last ones.
func (n *names) Visible(EndpointSet) EndpointSet {
	n.mu.Lock()
	defer n.mu.Unlock()
	seen := make(EndpointSet, n.count)
	for i := range seen {
		seen[i] = flat(n.lastAddresses[i])
	}
	return seen
}

func (n *names) Publish(truth EndpointSet) {
	n.mu.Lock()
	n.set(truth)
	watchers := n.orderedWatchers()
	if n.failing {
		watchers = nil
	}
	n.mu.Unlock()
	for _, w := range watchers {
		w.send()
	}
}

func (n *names) everEmpty() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.wasEmpty
}

func (n *names) orderedWatchers() []*nameResolver {
	var watchers []*nameResolver
	for i := range n.count {
		for w := range n.watchers {
			if w.name == n.entryName(i) {
				watchers = append(watchers, w)
			}
		}
	}
	return watchers
}

func (n *names) Fail(*rand.Rand) string {
	n.mu.Lock()
	n.failing = true
	watchers := n.orderedWatchers()
	n.mu.Unlock()
	for _, w := range watchers {
		w.send()
	}
	return "lookups of names fail"
}

func (n *names) Restore() {
	n.mu.Lock()
	n.failing = false
	watchers := n.orderedWatchers()
	n.mu.Unlock()
	for _, w := range watchers {
		w.send()
	}
}

// Lag is unlimited while a name has no addresses. During that time, a new channel uses the last
// addresses, which the library stores for an hour.
func (n *names) Lag() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.emptySince.IsZero() {
		return 1 << 60
	}
	return time.Second
}

func (n *names) Recovery() time.Duration { return time.Second }
func (n *names) Close()                  {}

func (n *names) Scheme() string { return "sim" }

func (n *names) Build(target resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) (resolver.Resolver, error) {
	w := &nameResolver{names: n, name: target.Endpoint(), cc: cc}
	n.mu.Lock()
	_, known := n.addresses[w.name]
	n.watchers[w] = true
	n.mu.Unlock()
	if !known {
		return nil, fmt.Errorf("unknown name %q", w.name)
	}
	w.send()
	return w, nil
}

type nameResolver struct {
	names *names
	name  string
	cc    resolver.ClientConn
}

func (w *nameResolver) send() {
	w.names.mu.Lock()
	addresses, failing := w.names.addresses[w.name], w.names.failing
	w.names.mu.Unlock()
	if failing {
		w.cc.ReportError(errors.New("lookup failed"))
		return
	}
	var state resolver.State
	for _, address := range addresses {
		state.Endpoints = append(state.Endpoints, resolver.Endpoint{Addresses: []resolver.Address{{Addr: address}}})
	}
	_ = w.cc.UpdateState(state) // an error asks for a re-resolution, but that would give the same result
}

func (w *nameResolver) ResolveNow(resolver.ResolveNowOptions) {}

func (w *nameResolver) Close() {
	w.names.mu.Lock()
	defer w.names.mu.Unlock()
	delete(w.names.watchers, w)
}
