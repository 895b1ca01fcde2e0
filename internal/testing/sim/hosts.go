package sim

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/understudy-lb/understudy/discovery/failover"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

// hosts is the source of a failover: target whose entries are DNS names.
type hosts struct {
	dns        *dns
	refresh    time.Duration
	firstIndex int

	mu        sync.Mutex
	addresses [][]string
	fault     fault
}

func newHosts(w *World, truth EndpointSet, first int) *hosts {
	// The names are numbered from first on.
	h := &hosts{dns: &w.dns, refresh: time.Duration(5+w.rand.IntN(56)) * time.Second, firstIndex: first, addresses: make([][]string, len(truth))}
	h.Publish(truth)
	w.dns.hosts = h
	return h
}

func (h *hosts) Target() string {
	entries := make([]string, len(h.addresses))
	for i := range entries {
		entries[i] = url.PathEscape("dns:///h" + strconv.Itoa(h.firstIndex+i) + ":50051")
	}
	return fmt.Sprintf("failover:///%s?refresh=%s", strings.Join(entries, ","), h.refresh)
}

func (h *hosts) Options() []given.Option {
	return []given.Option{given.Sources(failover.WithResolvers(h.dns))}
}

func (h *hosts) Visible(EndpointSet) EndpointSet {
	h.mu.Lock()
	defer h.mu.Unlock()
	seen := make(EndpointSet, len(h.addresses))
	for i, addresses := range h.addresses {
		seen[i] = flat(addresses)
	}
	return seen
}

// Publish sets the addresses of each name. The name of a priority without usable endpoints keeps
// its addresses, because DNS has no empty answers.
func (h *hosts) Publish(truth EndpointSet) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range min(len(truth), len(h.addresses)) {
		if serving := truth[i].Serving(); len(serving) > 0 {
			h.addresses[i] = serving
		}
	}
}

func (h *hosts) Fail(r *rand.Rand) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fault = servFail + fault(r.IntN(int(noReply)))
	return h.fault.String()
}

func (h *hosts) Restore() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fault = noFault
}

// Lag is the sum of two refresh intervals, because the channel removes an address only after two
// lookups without it.
func (h *hosts) Lag() time.Duration { return 2*h.refresh*11/10 + time.Second }

// Recovery is the sum of a lookup that times out, the interval after it, and Lag.
func (h *hosts) Recovery() time.Duration { return resolveTimeout + h.refresh*11/10 + h.Lag() }

func (h *hosts) KeepsEmptyPriorities() bool { return true }

func (h *hosts) Close() {}

func (h *hosts) lookUp(name string) ([]string, fault) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, addresses := range h.addresses {
		if name == "h"+strconv.Itoa(h.firstIndex+i) {
			return addresses, h.fault
		}
	}
	return nil, nxDomain
}
