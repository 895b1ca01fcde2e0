package srv

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/understudy-lb/understudy/internal/core/names"
	"github.com/understudy-lb/understudy/internal/xnet"
)

const (
	// lookupTime limits the duration of a lookup of the records and all their addresses
	// (docs/waits.md).
	lookupTime = 30 * time.Second
	// lookupsAtOnce limits how many hosts are looked up at the same time. Hosts that have not
	// responded for a while do not count.
	lookupsAtOnce = 16
	mostAddresses = 64
)

// resolverAt returns a resolver that uses the DNS server at host:port, or the system's if server is
// "". If tcp is set, it uses TCP only.
func resolverAt(server string, tcp bool) xnet.Resolver {
	if server == "" && !tcp {
		return net.DefaultResolver
	}
	r := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		if server != "" {
			address = server
		}
		if tcp {
			network = "tcp"
		}
		var d net.Dialer
		return d.DialContext(ctx, network, address)
	}}
	if server == "" {
		return r
	}
	return namedServer{server, r}
}

// namedServer is a resolver whose errors name the DNS server of the target. The errors of package
// net would name the system's server.
type namedServer struct {
	server string
	*net.Resolver
}

func (s namedServer) LookupSRV(ctx context.Context, service, proto, name string) (string, []*net.SRV, error) {
	cname, records, err := s.Resolver.LookupSRV(ctx, service, proto, name)
	return cname, records, s.named(err)
}

func (s namedServer) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	addresses, err := s.Resolver.LookupNetIP(ctx, network, host)
	return addresses, s.named(err)
}

func (s namedServer) named(err error) error {
	if e, ok := errors.AsType[*net.DNSError](err); ok && e.Server != "" {
		e.Server = s.server
	}
	return err
}

type record struct {
	host             string
	port             uint16
	priority, weight uint16
}

type answer struct {
	records []record // empty if the service does not exist
	hosts   map[string]found
	flaws   []error // problems with single records or hosts
}

// found holds the addresses of a host. IPv4 and IPv6 addresses are looked up separately, so one
// lookup may fail while the other succeeds.
type found struct {
	addresses []netip.Addr
	known     [2]bool // by family, as in families: whether the lookup succeeded
}

// families are the networks to pass to LookupNetIP of package net.
var families = [2]string{"ip4", "ip6"}

func familyOf(ip netip.Addr) int {
	if ip.Unmap().Is4() {
		return 0
	}
	return 1
}

// some reports whether any lookup of a host has succeeded.
func (a *answer) some() bool {
	for _, f := range a.hosts {
		if f.known != [2]bool{} {
			return true
		}
	}
	return false
}

// lookUp looks up the SRV records of a name and the addresses of their hosts. At intervals of
// names.Hold, it calls early with the results so far, if there are new ones. It looks up the hosts
// in silent last, because they did not respond last time. now holds the hosts that have not
// responded this time.
func lookUp(ctx context.Context, l xnet.Resolver, name string, silent map[string]bool, early func(answer)) (a answer, now map[string]bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	_, records, err := l.LookupSRV(ctx, "", "", name)
	if len(records) == 0 {
		if err == nil {
			err = fmt.Errorf("lookup %s: no records", name)
		}
		return answer{}, nil, err
	}
	if len(records) == 1 && records[0].Target == "." {
		return answer{}, nil, nil
	}
	a = answer{hosts: make(map[string]found)}
	if err != nil {
		a.flaws = append(a.flaws, err) // err describes invalid records, which are left out
	}
	for _, r := range records {
		if r.Port == 0 {
			a.flaws = append(a.flaws, fmt.Errorf("lookup %s: the record of %s has port 0, and is left out", name, r.Target))
			continue
		}
		a.records = append(a.records, record{r.Target, r.Port, r.Priority, r.Weight})
	}
	if len(a.records) == 0 {
		return answer{}, nil, names.Flaws(a.flaws)
	}
	hosts := &hosts{heard: make(chan func()), done: make(chan struct{}), found: a, silent: make(map[string]bool)}
	go func() {
		defer close(hosts.done)
		hosts.lookUp(ctx, l, inTurn(a.records, silent))
	}()
	hosts.wait(early)
	if a = hosts.found; !a.some() {
		return answer{}, hosts.silent, names.Flaws(a.flaws)
	}
	return a, hosts.silent, nil
}

// inTurn returns the hosts of records in the order in which to look them up. It begins with the
// first host of each priority, then the second host of each, and so on, so that silent hosts of one
// priority do not delay the others. Hosts in silent come last.
func inTurn(records []record, silent map[string]bool) []string {
	type place struct {
		host  string
		order [3]int // sort keys: silent, index within the priority, priority
	}
	var places []place
	seen, of := make(map[string]bool), make(map[uint16]int)
	for _, r := range records {
		if seen[r.host] {
			continue
		}
		seen[r.host] = true
		p := place{r.host, [3]int{0, of[r.priority], int(r.priority)}}
		if of[r.priority]++; silent[r.host] {
			p.order[0] = 1
		}
		places = append(places, p)
	}
	slices.SortStableFunc(places, func(a, b place) int { return slices.Compare(a.order[:], b.order[:]) })
	var hosts []string
	for _, p := range places {
		hosts = append(hosts, p.host)
	}
	return hosts
}

func (r record) name() string { return strings.TrimSuffix(r.host, ".") }

// hosts looks up the hosts of SRV records. The goroutine that runs wait collects the results.
type hosts struct {
	heard chan func()   // receives functions, each of which records a result
	done  chan struct{} // closed when all lookups are finished

	// The following fields are used only by wait.
	found  answer
	silent map[string]bool // hosts that have not responded for names.Hold
	news   bool            // there are results that were not passed to early
}

// wait collects results until all lookups are finished. At intervals of names.Hold, it calls early
// with the results so far, if there are new ones.
func (h *hosts) wait(early func(answer)) {
	hold := time.NewTicker(names.Hold)
	defer hold.Stop()
	for {
		select {
		case <-h.done:
			return
		case note := <-h.heard:
			note()
		case <-hold.C:
			if h.news {
				h.news = false
				early(h.found)
			}
		}
	}
}

// note makes wait run a function. If all lookups are finished, note does nothing.
func (h *hosts) note(what func()) {
	select {
	case h.heard <- what:
	case <-h.done:
	}
}

// lookUp looks up hosts, at most lookupsAtOnce at a time. A lookup that takes longer than
// names.Hold continues, but does not count towards this limit.
func (h *hosts) lookUp(ctx context.Context, l xnet.Resolver, all []string) {
	var running sync.WaitGroup
	defer running.Wait()
	slots := make(chan struct{}, lookupsAtOnce)
	for i, host := range all {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			h.flaw(fmt.Errorf("lookup %s: no time left for it and %d more", host, len(all)-i-1))
			return
		}
		running.Go(func() {
			free := sync.OnceFunc(func() { <-slots })
			defer free()
			hold := time.AfterFunc(names.Hold, func() {
				h.note(func() { h.silent[host] = true })
				free()
			})
			defer hold.Stop()
			h.lookUpHost(ctx, l, host)
		})
	}
}

func (h *hosts) lookUpHost(ctx context.Context, l xnet.Resolver, host string) {
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

func (h *hosts) take(host string, family int, addresses []netip.Addr) {
	h.note(func() {
		f := h.found.hosts[host]
		f.known[family] = true
		f.addresses = slices.Clone(f.addresses)
		for _, ip := range addresses[:min(len(addresses), mostAddresses)] {
			if !slices.Contains(f.addresses, ip) && len(f.addresses) < mostAddresses {
				f.addresses = append(f.addresses, ip)
			}
		}
		h.found.hosts[host], h.news = f, true
	})
}

func (h *hosts) flaw(err error) { h.note(func() { h.found.flaws = append(h.found.flaws, err) }) }
