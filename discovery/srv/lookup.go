package srv

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
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
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		if server != "" {
			address = server
		}
		if tcp {
			network = "tcp"
		}
		var d net.Dialer
		return d.DialContext(ctx, network, address)
	}}
}

type record struct {
	host     string
	port     uint16
	priority uint16
	weight   uint64 // the sum, if there are several such records
}

// answer is the result of a lookup.
type answer struct {
	records   []record                // empty if the service does not exist
	addresses map[string][]netip.Addr // by name (see nameOf); names whose lookup failed are missing
	problems  []error                 // about single records or hosts
}

// families holds the networks to pass to LookupNetIP of package net. IPv4 and IPv6 addresses are
// looked up separately, so the lookup of one family may fail while that of the other succeeds.
var families = [2]string{"ip4", "ip6"}

// nameOf returns the name under which the addresses of a host and family are kept.
func nameOf(family, host string) string { return family + " " + host }

// hostLookups looks up the hosts of SRV records.
type hostLookups struct {
	source
	mu sync.Mutex // guards the fields below
	answer
	silent  map[string]bool // hosts that have not responded for names.Hold
	hasNews bool            // whether there are results that were not passed on
}

// lookUp looks up the SRV records and the addresses of their hosts. At intervals of names.Hold, it
// calls onPartial with the results so far, if there are new results. Hosts in silent, which did not
// respond to the previous lookup, are looked up last. nowSilent contains the hosts that did not
// respond to this lookup.
func (s source) lookUp(ctx context.Context, silent map[string]bool, onPartial func(answer)) (a answer, nowSilent map[string]bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	a, err = s.lookUpRecords(ctx)
	if err != nil || len(a.records) == 0 {
		return a, nil, err
	}
	l := &hostLookups{source: s, answer: a, silent: make(map[string]bool)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.lookUpHosts(ctx, lookupOrder(a.records, silent))
	}()
	holdTimer := time.NewTicker(names.Hold)
	defer holdTimer.Stop()
	for isDone := false; !isDone; {
		select {
		case <-done:
			isDone = true
		case <-holdTimer.C:
			l.record(func() {
				if l.hasNews {
					l.hasNews = false
					onPartial(l.answer)
				}
			})
		}
	}
	l.record(func() { a, nowSilent = l.answer, l.silent })
	if len(a.addresses) == 0 {
		return answer{}, nowSilent, names.DescribeFailures(a.problems)
	}
	return a, nowSilent, nil
}

func (s source) lookUpRecords(ctx context.Context) (answer, error) {
	_, records, err := s.resolver.LookupSRV(ctx, "", "", s.name)
	err = s.withServer(err)
	switch {
	case len(records) == 0 && err == nil:
		return answer{}, fmt.Errorf("lookup %s: no records", s.name)
	case len(records) == 0:
		return answer{}, err
	case len(records) == 1 && records[0].Target == ".":
		return answer{}, nil
	}
	a := answer{addresses: make(map[string][]netip.Addr)}
	if err != nil {
		a.problems = append(a.problems, err) // LookupSRV left out invalid records
	}
	for _, r := range records {
		if r.Port == 0 {
			a.problems = append(a.problems, fmt.Errorf("lookup %s: the record of %s is ignored, because its port is 0", s.name, r.Target))
			continue
		}
		a.records = append(a.records, record{r.Target, r.Port, r.Priority, uint64(r.Weight)})
	}
	if len(a.records) == 0 {
		return answer{}, names.DescribeFailures(a.problems)
	}
	return a, nil
}

// withServer replaces the address of the system's DNS server in err by that of the target's.
func (s source) withServer(err error) error {
	if e, ok := errors.AsType[*net.DNSError](err); ok && e.Server != "" && s.server != "" {
		e.Server = s.server
	}
	return err
}

// lookupOrder returns the hosts of records, which are sorted by priority, in the order in which to
// look them up. The order is the first host of each priority, then the second host of each
// priority, and so on, so that silent hosts of one priority do not delay the other priorities.
// Hosts in silent come last.
func lookupOrder(records []record, silent map[string]bool) []string {
	var hosts []string
	ranks, counts := make(map[string]int), make(map[uint16]int)
	for _, r := range records {
		if _, seen := ranks[r.host]; seen {
			continue
		}
		hosts = append(hosts, r.host)
		ranks[r.host] = counts[r.priority]
		if counts[r.priority]++; silent[r.host] {
			ranks[r.host] += len(records)
		}
	}
	slices.SortStableFunc(hosts, func(a, b string) int { return ranks[a] - ranks[b] })
	return hosts
}

// lookUpHosts looks up hosts, at most maxConcurrentLookups at a time. A lookup that takes longer
// than names.Hold continues, but no longer counts.
func (l *hostLookups) lookUpHosts(ctx context.Context, hosts []string) {
	var running sync.WaitGroup
	defer running.Wait()
	slots := make(chan struct{}, maxConcurrentLookups)
	for i, host := range hosts {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			l.addProblem(fmt.Errorf("lookup %s: no time left for this name and %d more", host, len(hosts)-i-1))
			return
		}
		running.Go(func() {
			release := sync.OnceFunc(func() { <-slots })
			defer release()
			began := time.Now()
			defer time.AfterFunc(names.Hold, release).Stop()
			l.lookUpHost(ctx, host)
			if time.Since(began) >= names.Hold {
				l.record(func() { l.silent[host] = true })
			}
		})
	}
}

func (l *hostLookups) lookUpHost(ctx context.Context, host string) {
	var running sync.WaitGroup
	var notFoundErrs [len(families)]error
	for i, family := range families {
		running.Go(func() {
			addresses, err := l.resolver.LookupNetIP(ctx, family, host)
			if e, _ := errors.AsType[*net.DNSError](err); e != nil && e.IsNotFound {
				err, notFoundErrs[i] = nil, err
			}
			if err != nil {
				l.addProblem(err)
				return
			}
			l.record(func() {
				l.addresses[nameOf(family, host)], l.hasNews = addresses[:min(len(addresses), maxAddresses)], true
			})
		})
	}
	running.Wait()
	if !slices.Contains(notFoundErrs[:], nil) {
		l.addProblem(notFoundErrs[0])
	}
}

func (l *hostLookups) addProblem(err error) {
	l.record(func() { l.problems = append(l.problems, l.withServer(err)) })
}

func (l *hostLookups) record(result func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	result()
}
