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
	"github.com/understudy-lb/understudy/internal/net/xnet"
)

const (
	// lookupTimeout limits the duration of a lookup of the records and all their addresses
	// (docs/waits.md).
	lookupTimeout = 30 * time.Second
	// maxConcurrentLookups limits how many hosts are looked up at the same time. Hosts that have
	// not responded for a while do not count.
	maxConcurrentLookups = 16
	maxAddresses         = 64
)

// newResolver returns a resolver that uses the DNS server at host:port, or the DNS server of the
// system if server is "". If tcp is set, the resolver uses only TCP.
func newResolver(server string, tcp bool) xnet.Resolver {
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

// namedServer is a resolver whose errors contain the address of the DNS server in the target. The
// errors of package net would contain the address of the system's DNS server.
type namedServer struct {
	server string
	*net.Resolver
}

func (s namedServer) LookupSRV(ctx context.Context, service, proto, name string) (string, []*net.SRV, error) {
	cname, records, err := s.Resolver.LookupSRV(ctx, service, proto, name)
	return cname, records, s.withServer(err)
}

func (s namedServer) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	addresses, err := s.Resolver.LookupNetIP(ctx, network, host)
	return addresses, s.withServer(err)
}

func (s namedServer) withServer(err error) error {
	if e, ok := errors.AsType[*net.DNSError](err); ok && e.Server != "" {
		e.Server = s.server
	}
	return err
}

type record struct {
	host     string
	port     uint16
	priority uint16
	weight   uint64 // the sum, if there are several such records
}

type answer struct {
	records  []record // empty if the service does not exist
	hosts    map[string]hostAddresses
	problems []error // about single records or hosts
}

// hostAddresses holds the addresses of a host. IPv4 and IPv6 addresses are looked up separately, so
// one lookup may fail while the other succeeds.
type hostAddresses struct {
	addresses []netip.Addr
	succeeded [2]bool // for each element of families, whether the lookup succeeded
}

// families holds the networks to pass to LookupNetIP of package net.
var families = [2]string{"ip4", "ip6"}

func familyOf(ip netip.Addr) int {
	if ip.Unmap().Is4() {
		return 0
	}
	return 1
}

// hasResult reports whether the lookup of at least one host has succeeded.
func (a *answer) hasResult() bool {
	for _, f := range a.hosts {
		if f.succeeded != [2]bool{} {
			return true
		}
	}
	return false
}

// lookUp looks up the SRV records of a name and the addresses of their hosts. At intervals of
// names.Hold, it calls onPartial with the results so far, if there are new results. Hosts in
// silent, which did not respond to the previous lookup, are looked up last. nowSilent contains the
// hosts that did not respond to this lookup.
func lookUp(ctx context.Context, l xnet.Resolver, name string, silent map[string]bool, onPartial func(answer)) (a answer, nowSilent map[string]bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
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
	a = answer{hosts: make(map[string]hostAddresses)}
	if err != nil {
		a.problems = append(a.problems, err) // LookupSRV left out invalid records
	}
	for _, r := range records {
		if r.Port == 0 {
			a.problems = append(a.problems, fmt.Errorf("lookup %s: the record of %s is ignored, because its port is 0", name, r.Target))
			continue
		}
		a.records = append(a.records, record{r.Target, r.Port, r.Priority, uint64(r.Weight)})
	}
	if len(a.records) == 0 {
		return answer{}, nil, names.DescribeFailures(a.problems)
	}
	lookups := &hostLookups{results: make(chan func()), done: make(chan struct{}), answer: a, silent: make(map[string]bool)}
	go func() {
		defer close(lookups.done)
		lookups.lookUp(ctx, l, lookupOrder(a.records, silent))
	}()
	lookups.wait(onPartial)
	if a = lookups.answer; !a.hasResult() {
		return answer{}, lookups.silent, names.DescribeFailures(a.problems)
	}
	return a, lookups.silent, nil
}

// lookupOrder returns the hosts of records in the order in which to look them up. The order is the
// first host of each priority, then the second host of each priority, and so on, so that silent
// hosts of one priority do not delay the other priorities. Hosts in silent come last.
func lookupOrder(records []record, silent map[string]bool) []string {
	type entry struct {
		host  string
		order [3]int // sort keys: silent, index within the priority, priority
	}
	var entries []entry
	seen, counts := make(map[string]bool), make(map[uint16]int)
	for _, r := range records {
		if seen[r.host] {
			continue
		}
		seen[r.host] = true
		p := entry{r.host, [3]int{0, counts[r.priority], int(r.priority)}}
		if counts[r.priority]++; silent[r.host] {
			p.order[0] = 1
		}
		entries = append(entries, p)
	}
	slices.SortStableFunc(entries, func(a, b entry) int { return slices.Compare(a.order[:], b.order[:]) })
	var hosts []string
	for _, p := range entries {
		hosts = append(hosts, p.host)
	}
	return hosts
}

func (r record) name() string { return strings.TrimSuffix(r.host, ".") }

// hostLookups looks up the hosts of SRV records. The goroutine that calls wait collects the
// results.
type hostLookups struct {
	results chan func()   // each function records one result
	done    chan struct{} // closed when all lookups are finished

	// The following fields are used only by wait.
	answer  answer
	silent  map[string]bool // hosts that have not responded for names.Hold
	hasNews bool            // whether there are results that were not passed to onPartial
}

// wait collects results until all lookups are finished. At intervals of names.Hold, it calls
// onPartial with the results so far, if there are new results.
func (h *hostLookups) wait(onPartial func(answer)) {
	holdTimer := time.NewTicker(names.Hold)
	defer holdTimer.Stop()
	for {
		select {
		case <-h.done:
			return
		case record := <-h.results:
			record()
		case <-holdTimer.C:
			if h.hasNews {
				h.hasNews = false
				onPartial(h.answer)
			}
		}
	}
}

// send makes wait call record. If all lookups are finished, send does nothing.
func (h *hostLookups) send(record func()) {
	select {
	case h.results <- record:
	case <-h.done:
	}
}

// lookUp looks up hosts, at most maxConcurrentLookups at a time. A lookup that takes longer than
// names.Hold continues, but no longer counts.
func (h *hostLookups) lookUp(ctx context.Context, l xnet.Resolver, all []string) {
	var running sync.WaitGroup
	defer running.Wait()
	slots := make(chan struct{}, maxConcurrentLookups)
	for i, host := range all {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			h.addProblem(fmt.Errorf("lookup %s: no time left for this name and %d more", host, len(all)-i-1))
			return
		}
		running.Go(func() {
			release := sync.OnceFunc(func() { <-slots })
			defer release()
			holdTimer := time.AfterFunc(names.Hold, func() {
				h.send(func() { h.silent[host] = true })
				release()
			})
			defer holdTimer.Stop()
			h.lookUpHost(ctx, l, host)
		})
	}
}

func (h *hostLookups) lookUpHost(ctx context.Context, l xnet.Resolver, host string) {
	var running sync.WaitGroup
	var notFoundErrs [len(families)]error
	for i, network := range families {
		running.Go(func() {
			addresses, err := l.LookupNetIP(ctx, network, host)
			if e, _ := errors.AsType[*net.DNSError](err); e != nil && e.IsNotFound {
				err, notFoundErrs[i] = nil, err
			}
			if err != nil {
				h.addProblem(err)
				return
			}
			h.addAddresses(host, i, addresses)
		})
	}
	running.Wait()
	if !slices.Contains(notFoundErrs[:], nil) {
		h.addProblem(notFoundErrs[0])
	}
}

func (h *hostLookups) addAddresses(host string, family int, addresses []netip.Addr) {
	h.send(func() {
		f := h.answer.hosts[host]
		f.succeeded[family] = true
		f.addresses = slices.Clone(f.addresses)
		for _, ip := range addresses[:min(len(addresses), maxAddresses)] {
			if !slices.Contains(f.addresses, ip) && len(f.addresses) < maxAddresses {
				f.addresses = append(f.addresses, ip)
			}
		}
		h.answer.hosts[host], h.hasNews = f, true
	})
}

func (h *hostLookups) addProblem(err error) {
	h.send(func() { h.answer.problems = append(h.answer.problems, err) })
}
