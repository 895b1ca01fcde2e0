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

// hosts is the source of a failover: target of DNS names, which are looked up at an interval.
type hosts struct {
	dns     *dns
	refresh time.Duration
	first   int

	mu        sync.Mutex
	addresses [][]string
	fault     fault
}

// newHosts creates a DNS name for each priority. first is the number of the first name.
func newHosts(w *World, truth Truth, first int) *hosts {
	h := &hosts{dns: &w.dns, refresh: time.Duration(5+w.rand.IntN(56)) * time.Second, first: first, addresses: make([][]string, len(truth))}
	h.Publish(truth)
	w.dns.hosts = h
	return h
}

func (h *hosts) Target() string {
	parts := make([]string, len(h.addresses))
	for i := range parts {
		parts[i] = url.PathEscape("dns:///h" + strconv.Itoa(h.first+i) + ":50051")
	}
	return fmt.Sprintf("failover:///%s?refresh=%s", strings.Join(parts, ","), h.refresh)
}

func (h *hosts) Options() []given.Option {
	return []given.Option{given.Sources(failover.WithResolvers(h.dns))}
}

func (h *hosts) Sees(Truth) Truth {
	h.mu.Lock()
	defer h.mu.Unlock()
	seen := make(Truth, len(h.addresses))
	for i, addresses := range h.addresses {
		seen[i] = flat(addresses)
	}
	return seen
}

// Publish sets the addresses of each name. A name keeps its last addresses, because DNS has no
// empty answers.
func (h *hosts) Publish(truth Truth) {
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
	h.fault = refused + fault(r.IntN(int(silent)))
	return h.fault.String()
}

func (h *hosts) Restore() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fault = none
}

// An address is removed after the second lookup that lacks it.
func (h *hosts) Lag() time.Duration { return 2*h.refresh*11/10 + time.Second }

// Recovery is the sum of Lag, a lookup that times out, and the pause after it.
func (h *hosts) Recovery() time.Duration { return resolveTimeout + h.refresh*11/10 + h.Lag() }

func (h *hosts) Fixed() bool { return true }

func (h *hosts) Close() {}

func (h *hosts) lookUp(name string) ([]string, fault) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, addresses := range h.addresses {
		if name == "h"+strconv.Itoa(h.first+i) {
			return addresses, h.fault
		}
	}
	return nil, unknown
}
