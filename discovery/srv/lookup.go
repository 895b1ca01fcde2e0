package srv

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/understudy-lb/understudy/internal/dnslookup"
)

const (
	// lookupTime is how long a look-up may take, that of all addresses included.
	lookupTime = 30 * time.Second
	// lookupHold is how long an answer waits for hosts of which nothing is heard, where
	// there is nothing to go on with meanwhile. It is shorter than the failover time, for
	// which a channel waits for its first part.
	lookupHold = 5 * time.Second
	// lookupsAtOnce is how many names are looked up at a time.
	lookupsAtOnce = 16
)

// resolverAt returns one that asks the name server at host:port, or the system's.
func resolverAt(server string) dnslookup.Resolver {
	if server == "" {
		return net.DefaultResolver
	}
	return namedServer{server, &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, server)
	}}}
}

// namedServer is a name server of the target's. Its errors name it, where the standard
// library's would name the system's.
type namedServer struct {
	server string
	*net.Resolver
}

// LookupSRV implements dnslookup.Resolver.
func (s namedServer) LookupSRV(ctx context.Context, service, proto, name string) (string, []*net.SRV, error) {
	cname, records, err := s.Resolver.LookupSRV(ctx, service, proto, name)
	return cname, records, s.named(err)
}

// LookupNetIP implements dnslookup.Resolver.
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

// record is an SRV record.
type record struct {
	host             string
	port             uint16
	priority, weight uint16
}

// answer is what a look-up has found.
type answer struct {
	records []record // by priority; none where the service says that there is none
	// addresses are those of the records' hosts. A host that is said to have none has an
	// empty list. A host that could not be looked up is missing.
	addresses map[string][]netip.Addr
	// flaws says what was wrong with a part of the answer.
	flaws error
}

// lookUp looks up the records of a name and their addresses. Early, which may be nil, is
// given what there is after lookupHold.
func lookUp(ctx context.Context, l dnslookup.Resolver, name string, early func(answer)) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	_, found, err := l.LookupSRV(ctx, "", "", name)
	if len(found) == 0 {
		if err == nil {
			err = fmt.Errorf("lookup %s: no records", name)
		}
		return answer{}, err
	}
	if len(found) == 1 && found[0].Target == "." {
		return answer{}, nil
	}
	a := answer{addresses: make(map[string][]netip.Addr), flaws: err} // of records that are left out
	for _, r := range found {
		a.records = append(a.records, record{r.Target, r.Port, r.Priority, r.Weight})
	}
	hosts := &hosts{found: a}
	done := make(chan struct{})
	go func() {
		defer close(done)
		hosts.lookUp(ctx, l)
	}()
	if early != nil {
		hold := time.NewTimer(lookupHold)
		defer hold.Stop()
		select {
		case <-done:
		case <-hold.C:
			early(hosts.now())
		}
	}
	<-done
	a = hosts.now()
	if len(a.addresses) == 0 {
		return answer{}, a.flaws
	}
	return a, nil
}

// hosts are the hosts of an answer's records, whose addresses are looked up.
type hosts struct {
	mu    sync.Mutex
	found answer
}

// now returns what was found until now.
func (h *hosts) now() answer {
	h.mu.Lock()
	defer h.mu.Unlock()
	return answer{h.found.records, maps.Clone(h.found.addresses), h.found.flaws}
}

// lookUp looks up the addresses of all records.
func (h *hosts) lookUp(ctx context.Context, l dnslookup.Resolver) {
	var running sync.WaitGroup
	asked := make(map[string]bool)
	slots := make(chan struct{}, lookupsAtOnce)
	for _, r := range h.found.records {
		if asked[r.host] {
			continue
		}
		asked[r.host] = true
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			addresses, err := l.LookupNetIP(ctx, "ip", r.host)
			h.take(r.host, addresses, err)
		})
	}
	running.Wait()
}

// take takes the addresses of a host.
func (h *hosts) take(host string, addresses []netip.Addr, err error) {
	missing, _ := errors.AsType[*net.DNSError](err)
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil || missing != nil && missing.IsNotFound {
		h.found.addresses[host] = addresses
	}
	if err != nil && (h.found.flaws == nil || err.Error() < h.found.flaws.Error()) {
		h.found.flaws = err // the same of several from time to time
	}
}

// name returns a host without the dot at the end.
func (r record) name() string { return strings.TrimSuffix(r.host, ".") }
