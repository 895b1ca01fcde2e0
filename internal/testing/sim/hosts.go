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

// hosts is a source of a failover: target. Each part is a DNS name, which is looked up by an
// interval.
type hosts struct {
	dns     *dns
	refresh time.Duration
	first   int // the number of the first part

	mu        sync.Mutex
	addresses [][]string // by part
	fault     fault
}

// newHosts returns names for the priorities from first on.
func newHosts(w *World, truth Truth, first int) *hosts {
	h := &hosts{dns: &w.dns, refresh: time.Duration(5+w.rand.IntN(56)) * time.Second, first: first, addresses: make([][]string, len(truth))}
	h.Publish(truth)
	w.dns.hosts = h
	return h
}

// Target returns one with the interval of its questions.
func (h *hosts) Target() string {
	parts := make([]string, len(h.addresses))
	for i := range parts {
		parts[i] = url.PathEscape("dns:///h" + strconv.Itoa(h.first+i) + ":50051")
	}
	return fmt.Sprintf("failover:///%s?refresh=%s", strings.Join(parts, ","), h.refresh)
}

// Options returns the one that has the names looked up in the world.
func (h *hosts) Options() []given.Option {
	return []given.Option{given.Sources(failover.WithResolvers(h.dns))}
}

// Sees returns the addresses of each name alone.
func (h *hosts) Sees(Truth) Truth {
	h.mu.Lock()
	defer h.mu.Unlock()
	seen := make(Truth, len(h.addresses))
	for i, addresses := range h.addresses {
		seen[i] = flat(addresses)
	}
	return seen
}

// Publish gives each name its addresses. The last ones of a name stay: nobody takes those out
// of DNS.
func (h *hosts) Publish(truth Truth) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range min(len(truth), len(h.addresses)) {
		if serving := truth[i].Serving(); len(serving) > 0 {
			h.addresses[i] = serving
		}
	}
}

// Fail makes the name servers fail.
func (h *hosts) Fail(r *rand.Rand) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fault = refused + fault(r.IntN(int(silent)))
	return h.fault.String()
}

// Restore makes them well.
func (h *hosts) Restore() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fault = none
}

// Lag is that of the second answer that lacks what is removed.
func (h *hosts) Lag() time.Duration { return 2*h.refresh*11/10 + time.Second }

// Recovery is that, after a question without an answer and the pause after it.
func (h *hosts) Recovery() time.Duration { return resolveTimeout + h.refresh*11/10 + h.Lag() }

// Fixed says that they are.
func (h *hosts) Fixed() bool { return true }

// Close does nothing: look-ups end with their channels.
func (h *hosts) Close() {}

// lookUp returns the addresses of a name, and what is wrong with the name servers.
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
