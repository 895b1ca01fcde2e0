package cds

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/grpc/grpclog"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/feed"
	"github.com/understudy-lb/understudy/internal/printable"
	"github.com/understudy-lb/understudy/topology"
)

// strictHold is how long the first answer waits for names of which nothing is heard. It is
// shorter than the failover time, for which the feed waits for the cluster.
const strictHold = 5 * time.Second

var (
	logger         = grpclog.Component("understudy")
	errNoAddresses = errors.New("its resolver answered without addresses")
)

// mostFlaws is how many names an error lists.
const mostFlaws = 4

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
		return newStatic(c.Assignment, explain)
	}
	return s
}

// Size returns about how many bytes it takes.
func (s *strict) Size() int {
	const name, endpoint = 500, 1000 // a message takes ten times as much as its encoding
	n := name * len(s.hosts)
	for _, locality := range s.from.GetEndpoints() {
		n += endpoint * (1 + len(locality.GetLbEndpoints()))
	}
	return n
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
	w := &strictWatch{strict: s, receiver: r, found: s.recall(feed.Remembered(r)), unknown: len(s.hosts), beside: len(s.addresses()) > 0}
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
	w.hold = time.AfterFunc(strictHold, w.lose)
	w.mu.Unlock()
	_ = w.changed()
	return w, nil
}

type strictWatch struct {
	*strict
	receiver discovery.Receiver
	watches  []discovery.Watch
	beside   bool // there are addresses beside the names

	mu      sync.Mutex
	found   []found
	unknown int // of how many nothing is heard yet
	flawed  int // how many could not be looked up last
	started bool
	late    bool // names of which nothing is heard are not waited for
	closed  bool
	hold    *time.Timer // sets late
	pacing

	telling sync.Mutex // one answer at a time is passed on; guards what follows
	passed  bool       // one was
	logged  string     // what is wrong, as was logged last
}

// Close implements discovery.Watch.
func (w *strictWatch) Close() {
	w.mu.Lock()
	w.closed = true
	for _, timer := range []*time.Timer{w.hold, w.soon} {
		if timer != nil {
			timer.Stop()
		}
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
	all := w.unknown == 0
	w.mu.Unlock()
	if !all {
		_ = w.changed()
	}
}

// ResolveNow has all names looked up again. What is found is passed on even if it is the same:
// the channel may have refused it.
func (w *strictWatch) ResolveNow() {
	w.mu.Lock()
	w.again = true
	w.mu.Unlock()
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
	addresses := addressesIn(a.Endpoints)
	if len(addresses) == 0 {
		p.Fail(errNoAddresses)
		return errNoAddresses
	}
	if !p.take(func(f *found) { *f = found{known: true, addresses: addresses} }) {
		return nil
	}
	return p.changed()
}

// Fail implements discovery.Receiver. The last answer stays in use.
func (p *part) Fail(err error) {
	if p.take(func(f *found) { f.fail(feed.Stable(err)) }) {
		_ = p.changed()
	}
}

// Parts implements discovery.Receiver. Names have none.
func (p *part) Parts([]discovery.Part) {}

// take changes what is known of the name. It reports whether that is to be passed on. What
// repeats the last answer is not: each would cost a look at all names.
func (p *part) take(change func(*found)) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := &p.found[p.index]
	last := *f
	change(f)
	if !last.known {
		p.unknown--
	}
	if last.err != nil {
		p.flawed--
	}
	if f.err != nil {
		p.flawed++
	}
	return p.again || !last.equal(*f)
}

// ready reports whether there is something to pass on: an answer for each name, or the names
// have had their time and something is known, what one of them stands for or an address
// beside them. The lock is held.
func (w *strictWatch) ready() bool {
	return w.started && !w.closed && (w.unknown == 0 || w.late && (w.unknown < len(w.found) || w.beside))
}

// tell passes the answers on.
func (w *strictWatch) tell() error {
	w.telling.Lock()
	defer w.telling.Unlock()
	w.mu.Lock()
	if !w.ready() {
		w.mu.Unlock()
		return nil
	}
	w.begin()
	well := w.beside || w.unknown+w.flawed < len(w.found)
	var flaws []string
	names := make(feed.Names, len(w.found))
	for i, f := range w.found {
		names[w.hosts[i]] = feed.Name{Addresses: f.addresses, Until: f.until}
		if f.err != nil && len(flaws) < mostFlaws {
			flaws = append(flaws, w.hosts[i]+": "+f.err.Error())
		}
	}
	if more := w.flawed - len(flaws); more > 0 {
		flaws = append(flaws, fmt.Sprintf("and %d more", more))
	}
	none := w.flawed == len(w.hosts)
	w.mu.Unlock()
	cluster, some := w.resolved(names)
	if !some || !w.passed && !well || w.passed && none {
		w.receiver.Fail(errors.New(strings.Join(flaws, "; ")))
		return nil
	}
	w.log(strings.Join(flaws, "; "))
	w.passed = true
	feed.Remember(w.receiver, names)
	err := w.receiver.Update(discovery.Answer{Cluster: cluster, Explain: w.explain})
	w.mu.Lock()
	w.again = err != nil
	w.mu.Unlock()
	return err
}

// log says once what is wrong with some of the names.
func (w *strictWatch) log(flaws string) {
	if flaws != "" && flaws != w.logged {
		logger.Warningf("cluster %q: %s; the other names go on", w.name, printable.Text(flaws))
	}
	w.logged = flaws
}
