package srv

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/understudy-lb/understudy/internal/core/names"
	"github.com/understudy-lb/understudy/internal/net/xnet"
)

const (
	// lookupTimeout is for the records and all their addresses together (docs/waits.md).
	lookupTimeout = 30 * time.Second
	// maxConcurrentLookups doesn't include lookups that have taken longer than names.Hold.
	maxConcurrentLookups = 256
	maxAddresses         = 64
)

// newResolver returns a resolver that uses the DNS server at host:port, or the system's if server
// is "". If tcp is set, it doesn't use UDP.
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
	weight   uint64 // may be the sum of several, see merged
}

type answer struct {
	records   []record                // empty if the service doesn't exist
	addresses map[string][]netip.Addr // by nameOf; doesn't include failed lookups
	problems  []error                 // with single records or hosts
}

// families has the networks for LookupNetIP. We look up IPv4 and IPv6 addresses separately, so that
// we can still use one family if the lookup of the other fails.
var families = [2]string{"ip4", "ip6"}

// nameOf returns the key for the addresses that a host has in one family.
func nameOf(family, host string) string { return family + " " + host }

type result struct {
	host, family string
	addresses    []netip.Addr
	err          error
}

// lookUp looks up the SRV records, and then the addresses of their hosts. Every names.Hold, it
// calls onPartial with the results so far, if there are any new ones.
func (s source) lookUp(ctx context.Context, onPartial func(answer)) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	a, err := s.lookUpRecords(ctx)
	if err != nil || len(a.records) == 0 {
		return a, err
	}
	results := make(chan result)
	go s.lookUpHosts(ctx, a.records, results)
	holdTimer := time.NewTicker(names.Hold)
	defer holdTimer.Stop()
	missing := make(map[string]bool) // hosts without addresses in one family
	for hasNews := false; ; {
		select {
		case r, more := <-results:
			if !more {
				if len(a.addresses) == 0 {
					return answer{}, names.DescribeFailures(a.problems)
				}
				return a, nil
			}
			e, _ := errors.AsType[*net.DNSError](r.err)
			notFound := e != nil && e.IsNotFound
			if r.err == nil || notFound {
				a.addresses[nameOf(r.family, r.host)], hasNews = r.addresses[:min(len(r.addresses), maxAddresses)], true
			}
			if r.err != nil && (!notFound || missing[r.host]) {
				a.problems = append(a.problems, s.withServer(r.err))
			}
			missing[r.host] = missing[r.host] || notFound
		case <-holdTimer.C:
			if hasNews {
				hasNews = false
				onPartial(a)
			}
		}
	}
}

// lookUpHosts runs up to maxConcurrentLookups lookups at a time. If one takes longer than
// names.Hold, it keeps running, but doesn't count anymore.
func (s source) lookUpHosts(ctx context.Context, records []record, results chan<- result) {
	defer close(results)
	var running sync.WaitGroup
	defer running.Wait()
	slots := make(chan struct{}, maxConcurrentLookups)
	seen := make(map[string]bool)
	for _, r := range records {
		if seen[r.host] {
			continue
		}
		seen[r.host] = true
		for _, family := range families {
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				results <- result{err: fmt.Errorf("lookup %s: no time left for this name and those after it", r.host)}
				return
			}
			running.Go(func() {
				release := sync.OnceFunc(func() { <-slots })
				defer release()
				defer time.AfterFunc(names.Hold, release).Stop()
				addresses, err := s.resolver.LookupNetIP(ctx, family, r.host)
				results <- result{r.host, family, addresses, err}
			})
		}
	}
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

// withServer corrects the DNS server in err. Package net always names one of the system's, even if
// we've sent the query to the one in the target.
func (s source) withServer(err error) error {
	if e, ok := errors.AsType[*net.DNSError](err); ok && e.Server != "" && s.server != "" {
		e.Server = s.server
	}
	return err
}
