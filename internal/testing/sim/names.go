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

// names is the source and the resolver of a failover: target with names.
type names struct {
	mu        sync.Mutex
	addresses map[string][]string
	last      [][]string // the last addresses of each entry, never empty
	failing   bool
	watchers  map[*nameResolver]bool
	first     int
	parts     int
	empty     time.Time // since when an entry has had no addresses; zero if all have some
	was       bool      // an entry was without addresses at some time
}

// newNames creates a name for each priority. first is the number of the first name.
func newNames(truth Truth, first int) *names {
	n := &names{first: first, addresses: make(map[string][]string), watchers: make(map[*nameResolver]bool), last: make([][]string, len(truth)), parts: len(truth)}
	n.set(truth)
	return n
}

func (n *names) set(truth Truth) {
	empty := false
	for i := range n.parts {
		var tier Tier
		if i < len(truth) {
			tier = truth[i]
		}
		n.addresses[n.partName(i)] = tier.Serving()
		if len(tier.Serving()) > 0 {
			n.last[i] = tier.Serving()
		} else {
			empty = true
		}
	}
	switch {
	case !empty:
		n.empty = time.Time{}
	case n.empty.IsZero():
		n.empty, n.was = time.Now(), true
	}
}

func (n *names) partName(i int) string { return "p" + strconv.Itoa(n.first+i) }

func (n *names) Fixed() bool { return true }

func (n *names) Target() string {
	parts := make([]string, n.parts)
	for i := range parts {
		parts[i] = url.PathEscape("sim:///" + n.partName(i))
	}
	return "failover:///" + strings.Join(parts, ",")
}

func (n *names) Options() []given.Option {
	return []given.Option{given.Sources(failover.WithResolvers(n))}
}

// Sees leaves out localities and weights, which names do not have. The target has a fixed number of
// entries, and a name without addresses keeps its last ones.
func (n *names) Sees(Truth) Truth {
	n.mu.Lock()
	defer n.mu.Unlock()
	seen := make(Truth, n.parts)
	for i := range seen {
		seen[i] = flat(n.last[i])
	}
	return seen
}

func (n *names) Publish(truth Truth) {
	n.mu.Lock()
	n.set(truth)
	watchers := n.list()
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
	return n.was
}

func (n *names) list() []*nameResolver {
	var watchers []*nameResolver
	for i := range n.parts {
		for w := range n.watchers {
			if w.name == n.partName(i) {
				watchers = append(watchers, w)
			}
		}
	}
	return watchers
}

func (n *names) Fail(*rand.Rand) string {
	n.mu.Lock()
	n.failing = true
	watchers := n.list()
	n.mu.Unlock()
	for _, w := range watchers {
		w.send()
	}
	return "lookups of names fail"
}

func (n *names) Restore() {
	n.mu.Lock()
	n.failing = false
	watchers := n.list()
	n.mu.Unlock()
	for _, w := range watchers {
		w.send()
	}
}

// Lag is unlimited while a name has no addresses. A channel that opens then uses the last
// addresses, which are stored for an hour.
func (n *names) Lag() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.empty.IsZero() {
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
	_ = w.cc.UpdateState(state) // an error would ask for another resolution, which gives the same answer
}

func (w *nameResolver) ResolveNow(resolver.ResolveNowOptions) {}

func (w *nameResolver) Close() {
	w.names.mu.Lock()
	defer w.names.mu.Unlock()
	delete(w.names.watchers, w)
}
