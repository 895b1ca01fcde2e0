package cds

import (
	"errors"
	"math"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/grpclog"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/core/names"
	"github.com/understudy-lb/understudy/internal/envoy"
	"github.com/understudy-lb/understudy/internal/join"
	"github.com/understudy-lb/understudy/internal/printable"
	"github.com/understudy-lb/understudy/internal/serial"
	"github.com/understudy-lb/understudy/internal/topology"
	"github.com/understudy-lb/understudy/internal/xnet"
)

var (
	logger         = grpclog.Component("understudy")
	errNoAddresses = errors.New("its resolver answered without addresses")
)

// strict is the source of a STRICT_DNS cluster. Each address of a name has the weight of the name.
type strict struct {
	cluster *Cluster
	explain func(*envoy.Invalid) error
	hosts   []string
	sources []discovery.Source
}

func (m *Maker) strict(c *Cluster, explain func(*envoy.Invalid) error) discovery.Source {
	s := &strict{cluster: c, explain: explain}
	seen := make(map[string]bool)
	for _, p := range c.answer.Priorities {
		for _, l := range p.Localities {
			for _, e := range l.Endpoints {
				if host := hostOf(e); host != "" && !seen[host] {
					seen[host] = true
					s.hosts, s.sources = append(s.hosts, host), append(s.sources, m.dns(host))
				}
			}
		}
	}
	if len(s.hosts) == 0 {
		return static{c, explain}
	}
	return s
}

func (s *strict) Size() int {
	const name = 500
	return name*len(s.hosts) + topology.Size(&s.cluster.answer)
}

// hostOf returns the host:port of an endpoint that is a name, or "".
func hostOf(e discovery.Endpoint) string {
	if len(e.Addresses) == 0 {
		return ""
	}
	address := e.Addresses[0]
	host, _, err := net.SplitHostPort(address)
	if err != nil || strings.HasPrefix(address, "unix:") {
		return ""
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return ""
	}
	return address
}

func (s *strict) Start(r *discovery.Receiver) (discovery.Started, error) {
	r.Trying("looking up " + printable.Count(len(s.hosts), "name", "names"))
	w := &strictWatch{strict: s, receiver: r, set: names.New(s.recall(r.Remembered()), len(s.addresses()) > 0)}
	for i, source := range s.sources {
		p := &part{w, i}
		started, err := source.Start(new(discovery.Receiver).With(discovery.Hooks{Update: p.update, Fail: p.fail}))
		if err != nil { // a failed lookup does not affect the other names
			p.fail(err)
			started = discovery.Started{}
		}
		w.names = append(w.names, started)
	}
	w.events.Do(func() {
		w.started = true
		w.hold.Start(&w.events, names.Hold, func() {
			if w.set.Late() {
				_ = w.changed()
			}
		})
		_ = w.changed()
	})
	return discovery.Started{Close: w.close, ResolveNow: w.resolveNow}, nil
}

func (s *strict) Check(read bool) error {
	for _, source := range s.sources {
		if err := source.Check(read); err != nil {
			return err
		}
	}
	return nil
}

type strictWatch struct {
	*strict
	receiver *discovery.Receiver
	names    []discovery.Started
	closed   atomic.Bool

	events  serial.Serializer // guards the fields below
	set     *names.Set
	started bool
	again   bool // pass on the next answer even if it has not changed
	hold    serial.Timer
	pacing
	logged string
}

func (w *strictWatch) close() {
	w.closed.Store(true)
	w.events.Run(func() {
		w.hold.Stop()
		w.soon.Stop()
	})
	for _, name := range w.names {
		if name.Close != nil {
			name.Close()
		}
	}
}

// resolveNow looks up all names again. The next answer is then passed on even if it has not
// changed, because the channel may have rejected it.
func (w *strictWatch) resolveNow() {
	w.events.Run(func() { w.again = true })
	for _, name := range w.names {
		if name.ResolveNow != nil {
			name.ResolveNow()
		}
	}
}

type part struct {
	*strictWatch
	index int
}

// update applies an answer. If it can pass the answer on at once, it returns the channel's error.
// An answer without addresses counts as a failure, because gRPC's DNS resolver reports missing
// names in that way.
func (p *part) update(a discovery.Answer) error {
	addresses := addressesIn(a.Resolved)
	if len(addresses) == 0 {
		p.fail(errNoAddresses)
		return errNoAddresses
	}
	var verdict atomic.Pointer[error]
	p.events.Run(func() {
		if p.set.Found(p.index, addresses) || p.again {
			err := p.changed()
			verdict.Store(&err)
		}
	})
	if err := verdict.Load(); err != nil {
		return *err
	}
	return nil
}

func (p *part) fail(err error) {
	err = join.Stable(err)
	p.events.Run(func() {
		if p.set.Failed(p.index, err, time.Now()) || p.again {
			_ = p.changed()
		}
	})
}

func (w *strictWatch) ready() bool { return w.started && !w.closed.Load() && w.set.Ready() }

func (w *strictWatch) tell() error {
	w.begin()
	flaws := w.set.Flaws(func(i int) string { return w.hosts[i] })
	known := make(map[string]discovery.Name, len(w.hosts))
	for i, n := range w.set.Names() {
		known[w.hosts[i]] = discovery.Name{Addresses: n.Addresses, Until: n.Until}
	}
	answer, some := w.resolved(known)
	if w.set.Fails(some) {
		w.receiver.Fail(errors.New(flaws))
		return nil
	}
	w.log(flaws)
	answer.Names = known
	err := w.receiver.Update(answer)
	w.again = err != nil
	return err
}

func (w *strictWatch) log(flaws string) {
	if flaws != "" && flaws != w.logged {
		logger.Warningf("cluster %q: %s; the other names are used", w.cluster.Name, printable.Text(flaws))
	}
	w.logged = flaws
}

func (s *strict) recall(known map[string]discovery.Name) []names.Name {
	list := make([]names.Name, len(s.hosts))
	for i, host := range s.hosts {
		list[i] = names.Name{Addresses: known[host].Addresses, Held: names.Held{Until: known[host].Until}}
	}
	return list
}

func addressesIn(endpoints []resolver.Endpoint) []string {
	var addresses []string
	for _, e := range endpoints {
		for _, a := range e.Addresses {
			addresses = append(addresses, a.Addr)
		}
	}
	return addresses
}

// resolved replaces the names in the cluster by their addresses. An address that several names have
// belongs to the first of them. If an endpoint has additional addresses, they are added to the
// first address of its name.
func (s *strict) resolved(names map[string]discovery.Name) (answer discovery.Answer, some bool) {
	answer = s.cluster.answerWith(s.explain)
	answer.Identity, answer.Empty = "", false
	taken := s.addresses()
	answer.Priorities = slices.Clone(answer.Priorities)
	for i, p := range answer.Priorities {
		localities := slices.Clone(p.Localities)
		for j, l := range localities {
			var list []discovery.Endpoint
			for _, e := range l.Endpoints {
				host := hostOf(e)
				if host == "" {
					list, some = append(list, e), true
					continue
				}
				for _, address := range names[host].Addresses {
					address, problem := topology.CanonicalAddress(address)
					if problem == "" && taken.take(address) {
						list, some = append(list, at(e, address, taken)), true
					}
				}
			}
			localities[j].Endpoints = fit(list)
		}
		answer.Priorities[i].Localities = localities
	}
	return answer, some
}

type addresses map[string]bool

func (t addresses) take(address string) bool {
	if t[address] {
		return false
	}
	t[address] = true
	return true
}

func (s *strict) addresses() addresses {
	taken := make(addresses)
	for _, p := range s.cluster.answer.Priorities {
		for _, l := range p.Localities {
			for _, e := range l.Endpoints {
				if hostOf(e) == "" {
					for _, address := range e.Addresses {
						taken.take(address)
					}
				}
			}
		}
	}
	return taken
}

// at returns a copy of the endpoint with another first address. It keeps only those additional
// addresses that are not taken yet.
func at(e discovery.Endpoint, address string, taken addresses) discovery.Endpoint {
	addresses := []string{address}
	for _, more := range e.Addresses[1:] {
		if taken.take(more) {
			addresses = append(addresses, more)
		}
	}
	e.Addresses = addresses
	return e
}

// fit scales down the weights of a locality whose sum exceeds the limit. This can happen because
// each address of a name has the name's weight.
func fit(list []discovery.Endpoint) []discovery.Endpoint {
	var sum uint64
	for _, e := range list {
		sum += uint64(max(e.Weight, 1))
	}
	if sum <= math.MaxUint32 {
		return list
	}
	by := sum/(math.MaxUint32-uint64(len(list))) + 1 // with this divisor, no weight becomes 0
	for i := range list {
		list[i].Weight = uint32(max(uint64(list[i].Weight)/by, 1))
	}
	return list
}

// These constants determine the minimum time between two answers. Many names may be resolved within
// seconds, and building an answer takes time for each of them.
const (
	fewNames  = 16
	pauseEach = 100 * time.Microsecond // for each name; building an answer takes about a thirtieth of this
)

type pacing struct {
	told     time.Time
	soon     serial.Timer
	refusals int
}

func (p *pacing) begin() {
	p.told = time.Now()
	p.soon.Stop()
}

// changed passes on the current answer, at once or after a pause.
func (w *strictWatch) changed() error {
	if !w.ready() {
		return nil
	}
	if n := len(w.hosts); n > fewNames && !w.told.IsZero() {
		if wait := time.Until(w.told.Add(time.Duration(n) * pauseEach)); wait > 0 {
			w.later(wait)
			return nil
		}
	}
	return w.tell()
}

// later passes on the answer after the wait. If the channel rejects it, later tries again, because
// there is no caller that could receive the error.
func (w *strictWatch) later(wait time.Duration) {
	if w.soon.Runs() {
		return
	}
	w.soon.Start(&w.events, wait, func() {
		switch {
		case !w.ready():
		case w.tell() == nil:
			w.refusals = 0
		default:
			w.later(xnet.Backoff(w.refusals, rand.Float64()))
			w.refusals++
		}
	})
}
