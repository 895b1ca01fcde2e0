package srv

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/understudy-lb/understudy/internal/dnslookup"
)

const (
	// lookupTime is how long a look-up may take, that of all addresses included.
	lookupTime = 30 * time.Second
	// lookupHold is how long an answer waits for hosts of which nothing is heard, and how
	// long such a host keeps another one from being looked up. It is shorter than the
	// failover time, for which a channel waits for its first part.
	lookupHold = 5 * time.Second
	// lookupsAtOnce is how many hosts are looked up at a time, silent ones not counted.
	lookupsAtOnce = 16
	// mostAddresses is how many addresses of a host count.
	mostAddresses = 64
)

// resolverAt returns one that asks the name server at host:port, or the system's, over TCP
// alone if asked.
func resolverAt(server string, tcp bool) dnslookup.Resolver {
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
	records []record // none where the service says that there is none
	hosts   map[string]found
	// flaws says what was wrong with a part of the answer.
	flaws error
}

// found is what DNS says of the addresses of a host. Those of IPv4 and of IPv6 are looked up
// apart: an answer about one of them says nothing of the other.
type found struct {
	addresses []netip.Addr
	known     [2]bool // whether the look-up of a family has ended well, by the index in families
}

// families are the networks of package net.
var families = [2]string{"ip4", "ip6"}

// familyOf returns the index in families.
func familyOf(ip netip.Addr) int {
	if ip.Unmap().Is4() {
		return 0
	}
	return 1
}

// some returns whether anything is known of any host.
func (a *answer) some() bool {
	for _, f := range a.hosts {
		if f.known != [2]bool{} {
			return true
		}
	}
	return false
}

// lookUp looks up the records of a name, and the addresses of their hosts, the silent ones
// last. Early is given what there is after lookupHold, and again after each time in which
// something came. It returns the hosts that were silent.
func lookUp(ctx context.Context, l dnslookup.Resolver, name string, silent map[string]bool, early func(answer)) (a answer, now map[string]bool, err error) {
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
	a = answer{hosts: make(map[string]found), flaws: err} // of records that are left out
	for _, r := range records {
		if r.Port == 0 {
			a.flaws = fmt.Errorf("lookup %s: the record of %s has port 0, and is left out", name, r.Target)
			continue
		}
		a.records = append(a.records, record{r.Target, r.Port, r.Priority, r.Weight})
	}
	if len(a.records) == 0 {
		return answer{}, nil, a.flaws
	}
	hosts := &hosts{found: a, silent: make(map[string]bool)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		hosts.lookUp(ctx, l, inTurn(a.records, silent))
	}()
	hosts.wait(done, early)
	a, now = hosts.end()
	if !a.some() {
		return answer{}, now, a.flaws
	}
	return a, now, nil
}

// inTurn returns the hosts of records in the order in which they are looked up: one of each
// priority, then the second of each, and so on, so that a priority whose hosts are silent
// leaves something to the others. Those that were silent come last.
func inTurn(records []record, silent map[string]bool) []string {
	type place struct {
		host  string
		order [3]int // silent, place within the priority, priority
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

// name returns a host without the dot at the end.
func (r record) name() string { return strings.TrimSuffix(r.host, ".") }
