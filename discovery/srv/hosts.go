package srv

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/understudy-lb/understudy/internal/dnslookup"
)

// hosts are the hosts of an answer's records, whose addresses are looked up.
type hosts struct {
	mu     sync.Mutex
	found  answer
	silent map[string]bool // of which nothing was heard for lookupHold
	news   bool            // something was found since now was called
}

// wait waits until done is closed. After each lookupHold, early is given what was found, if
// there is something new.
func (h *hosts) wait(done <-chan struct{}, early func(answer)) {
	hold := time.NewTicker(lookupHold)
	defer hold.Stop()
	for {
		select {
		case <-done:
			return
		case <-hold.C:
			if a, news := h.now(); news {
				early(a)
			}
		}
	}
}

// now returns what was found until now, and whether some of it is new.
func (h *hosts) now() (a answer, news bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	a, news = h.found, h.news
	a.hosts, h.news = maps.Clone(a.hosts), false
	return a, news
}

// end returns what was found at the end, and which hosts were silent.
func (h *hosts) end() (answer, map[string]bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.found, maps.Clone(h.silent)
}

// lookUp looks up the addresses of hosts, so many at a time. One that is silent goes on, and
// gives its place away: otherwise a zone that is lost would keep the others from being asked.
func (h *hosts) lookUp(ctx context.Context, l dnslookup.Resolver, all []string) {
	var running sync.WaitGroup
	defer running.Wait()
	slots := make(chan struct{}, lookupsAtOnce)
	for i, host := range all {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			h.flaw(fmt.Errorf("lookup %s: there was no time for it, and %d more", host, len(all)-i-1))
			return
		}
		running.Go(func() {
			free := sync.OnceFunc(func() { <-slots })
			defer free()
			hold := time.AfterFunc(lookupHold, func() {
				h.mu.Lock()
				h.silent[host] = true
				h.mu.Unlock()
				free()
			})
			defer hold.Stop()
			h.lookUpHost(ctx, l, host)
		})
	}
}

// lookUpHost looks up the addresses of a host.
func (h *hosts) lookUpHost(ctx context.Context, l dnslookup.Resolver, host string) {
	var running sync.WaitGroup
	var missing [len(families)]error
	for i, network := range families {
		running.Go(func() {
			addresses, err := l.LookupNetIP(ctx, network, host)
			if e, _ := errors.AsType[*net.DNSError](err); e != nil && e.IsNotFound {
				err, missing[i] = nil, err
			}
			if err != nil {
				h.flaw(err)
				return
			}
			h.take(host, i, addresses)
		})
	}
	running.Wait()
	if !slices.Contains(missing[:], nil) {
		h.flaw(missing[0])
	}
}

// take takes the addresses of a host that a look-up of one family found.
func (h *hosts) take(host string, family int, addresses []netip.Addr) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.found.hosts[host]
	f.known[family] = true
	f.addresses = slices.Clone(f.addresses)
	for _, ip := range addresses[:min(len(addresses), mostAddresses)] {
		if !slices.Contains(f.addresses, ip) && len(f.addresses) < mostAddresses {
			f.addresses = append(f.addresses, ip)
		}
	}
	h.found.hosts[host] = f
	h.news = true
}

// flaw notes what was wrong with a part of the answer.
func (h *hosts) flaw(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.found.flaws == nil || err.Error() < h.found.flaws.Error() {
		h.found.flaws = err // the same of several from time to time
	}
}
