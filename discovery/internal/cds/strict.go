package cds

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/grpc/grpclog"
	"google.golang.org/grpc/resolver"
	"google.golang.org/protobuf/proto"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/feed"
	"github.com/understudy-lb/understudy/topology"
)

// strictHold is how long the first answer waits for names of which nothing is heard. It is
// shorter than the failover time, for which the feed waits for the cluster.
const strictHold = 5 * time.Second

var (
	logger         = grpclog.Component("understudy")
	errNoAddresses = errors.New("its resolver answered without addresses")
)

// strict is a source of a STRICT_DNS cluster: every name stands for all its addresses,
// each of which has the weight that the cluster gives the name.
type strict struct {
	name    string // of the cluster
	from    *endpointv3.ClusterLoadAssignment
	explain func(*topology.Invalid) error
	hosts   []string // host:port of the names
	sources []discovery.Source
}

// strict returns the source of a STRICT_DNS cluster.
func (m *Maker) strict(c *Cluster, explain func(*topology.Invalid) error) discovery.Source {
	s := &strict{name: c.Name, from: c.Assignment, explain: explain}
	seen := make(map[string]bool)
	for _, locality := range c.Assignment.GetEndpoints() {
		for _, e := range locality.GetLbEndpoints() {
			if host := hostOf(e); host != "" && !seen[host] {
				seen[host] = true
				s.hosts, s.sources = append(s.hosts, host), append(s.sources, m.dns(host))
			}
		}
	}
	if len(s.hosts) == 0 {
		return &static{discovery.Answer{Cluster: c.Assignment, Explain: explain}}
	}
	return s
}

// hostOf returns the host:port of an endpoint that is a name, "" for an address.
func hostOf(e *endpointv3.LbEndpoint) string {
	socket := e.GetEndpoint().GetAddress().GetSocketAddress()
	if _, err := netip.ParseAddr(socket.GetAddress()); socket == nil || err == nil {
		return ""
	}
	return net.JoinHostPort(socket.GetAddress(), strconv.Itoa(int(socket.GetPortValue())))
}

// Start implements discovery.Source.
func (s *strict) Start(r discovery.Receiver) (discovery.Watch, error) {
	w := &strictWatch{strict: s, receiver: r, found: s.recall(feed.Remembered(r))}
	for i, source := range s.sources {
		watch, err := source.Start(&part{w, i})
		if err != nil { // the other names go on
			(&part{w, i}).Fail(err)
			watch = closed{}
		}
		w.watches = append(w.watches, watch)
	}
	w.mu.Lock()
	w.started = true
	w.timer = time.AfterFunc(strictHold, w.lose)
	w.mu.Unlock()
	_ = w.tell()
	return w, nil
}

type strictWatch struct {
	*strict
	receiver discovery.Receiver
	watches  []discovery.Watch

	mu      sync.Mutex
	found   []found
	started bool
	late    bool // names of which nothing is heard are not waited for
	closed  bool
	timer   *time.Timer // sets late

	telling sync.Mutex // one answer at a time is passed on; guards what follows
	passed  bool       // one was
	logged  string     // what is wrong, as was logged last
}

// Close implements discovery.Watch.
func (w *strictWatch) Close() {
	w.mu.Lock()
	w.closed = true
	if w.timer != nil {
		w.timer.Stop()
	}
	w.mu.Unlock()
	for _, watch := range w.watches {
		watch.Close()
	}
}

// lose loses patience.
func (w *strictWatch) lose() {
	w.mu.Lock()
	w.late = true
	w.mu.Unlock()
	_ = w.tell()
}

// ResolveNow has all names looked up again.
func (w *strictWatch) ResolveNow() {
	for _, watch := range w.watches {
		if asked, ok := watch.(interface{ ResolveNow() }); ok {
			asked.ResolveNow()
		}
	}
}

// part receives the answers about one name.
type part struct {
	*strictWatch
	index int
}

// Update implements discovery.Receiver. An answer without an address counts as a failure:
// it is what gRPC's resolver says of a name that does not exist.
func (p *part) Update(a discovery.Answer) error {
	if !slices.ContainsFunc(a.Endpoints, func(e resolver.Endpoint) bool { return len(e.Addresses) > 0 }) {
		p.Fail(errNoAddresses)
		return errNoAddresses
	}
	p.mu.Lock()
	p.found[p.index] = found{known: true, addresses: addressesIn(a.Endpoints)}
	p.mu.Unlock()
	return p.tell()
}

// Fail implements discovery.Receiver. The last answer stays in use.
func (p *part) Fail(err error) {
	p.mu.Lock()
	p.found[p.index].fail(err)
	p.mu.Unlock()
	_ = p.tell()
}

// Parts implements discovery.Receiver. Names have none.
func (p *part) Parts([]discovery.Part) {}

// tell passes the answers on once there is one for each name, or the names have had their
// time and something is known: what one of them stands for, or an address beside them.
func (w *strictWatch) tell() error {
	w.telling.Lock()
	defer w.telling.Unlock()
	w.mu.Lock()
	ready, known, well := w.started && !w.closed, 0, len(w.addresses()) > 0
	var flaws []string
	names := make(feed.Names)
	for i, f := range w.found {
		names[w.hosts[i]] = feed.Name{Addresses: f.addresses, Until: f.until}
		if f.known {
			known++
			well = well || f.err == nil
		}
		if f.err != nil {
			flaws = append(flaws, w.hosts[i]+": "+feed.Stable(f.err).Error())
		}
	}
	ready = ready && (known == len(w.found) || w.late && (known > 0 || well))
	w.mu.Unlock()
	if !ready {
		return nil
	}
	cluster, some := w.resolved(names)
	if !some || !w.passed && !well || w.passed && len(flaws) == len(w.hosts) {
		w.receiver.Fail(errors.New(strings.Join(flaws, "; ")))
		return nil
	}
	w.log(strings.Join(flaws, "; "))
	w.passed = true
	feed.Remember(w.receiver, names)
	return w.receiver.Update(discovery.Answer{Cluster: cluster, Explain: w.explain})
}

// log says once what is wrong with some of the names.
func (w *strictWatch) log(flaws string) {
	if flaws != "" && flaws != w.logged {
		logger.Warningf("cluster %q: %s; the other names go on", w.name, flaws)
	}
	w.logged = flaws
}

// resolved returns the cluster with addresses in place of names, and whether there is one.
// An address that two names have counts for the first. Additional addresses beside a name
// belong to the first of its addresses.
func (s *strict) resolved(names feed.Names) (*endpointv3.ClusterLoadAssignment, bool) {
	cluster := proto.CloneOf(s.from)
	taken, some := s.addresses(), false
	for _, locality := range cluster.GetEndpoints() {
		var list []*endpointv3.LbEndpoint
		for _, e := range locality.GetLbEndpoints() {
			host := hostOf(e)
			if host == "" {
				list, some = append(list, e), true
				continue
			}
			for _, a := range names[host].Addresses {
				if address := addressOf(a); address != nil && taken.take(address) {
					list, some = append(list, at(e, address, taken)), true
				}
			}
		}
		locality.LbEndpoints = list
	}
	return cluster, some
}

// addresses are those that are in a cluster already, in the form that gRPC dials.
type addresses map[string]bool

// take returns whether address can be dialled and is not there yet, and adds it.
func (t addresses) take(address *corev3.Address) bool {
	dial := topology.Dial(address)
	if dial == "" || t[dial] {
		return false
	}
	t[dial] = true
	return true
}

// addresses returns those of the endpoints that are no names.
func (s *strict) addresses() addresses {
	taken := make(addresses)
	for _, locality := range s.from.GetEndpoints() {
		for _, e := range locality.GetLbEndpoints() {
			if hostOf(e) != "" {
				continue
			}
			taken.take(e.GetEndpoint().GetAddress())
			for _, more := range e.GetEndpoint().GetAdditionalAddresses() {
				taken.take(more.GetAddress())
			}
		}
	}
	return taken
}

// addressOf returns an address in Envoy's form, nil for one that is none.
func addressOf(address string) *corev3.Address {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil
	}
	socket := &corev3.SocketAddress{Address: host, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(n)}}
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: socket}}
}

// at returns an endpoint with another address, and those of its additional ones that are
// not taken.
func at(e *endpointv3.LbEndpoint, address *corev3.Address, taken addresses) *endpointv3.LbEndpoint {
	e = proto.CloneOf(e)
	e.GetEndpoint().Address = address
	e.GetEndpoint().AdditionalAddresses = slices.DeleteFunc(e.GetEndpoint().GetAdditionalAddresses(), func(more *endpointv3.Endpoint_AdditionalAddress) bool {
		return !taken.take(more.GetAddress())
	})
	return e
}
