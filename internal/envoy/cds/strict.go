package cds

import (
	"errors"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/grpclog"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/channel/join"
	"github.com/understudy-lb/understudy/internal/channel/topology"
	"github.com/understudy-lb/understudy/internal/core/names"
	"github.com/understudy-lb/understudy/internal/lb/serial"
	"github.com/understudy-lb/understudy/internal/net/xnet"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

var logger = grpclog.Component("understudy")

// strictSource is the source of a STRICT_DNS cluster. Each address of a host name becomes an
// endpoint, with the weight of the name.
type strictSource struct {
	cluster  *Cluster
	hosts    []string
	sources  []discovery.Source
	literals []string // no need to look these up
}

func newStrict(c *Cluster, lookup func(host string) discovery.Source) *strictSource {
	s := &strictSource{cluster: c}
	for _, p := range c.Answer.Priorities {
		for _, l := range p.Localities {
			for _, e := range l.Endpoints {
				if host := hostOf(e); host == "" {
					s.literals = append(s.literals, e.Addresses...)
				} else { // it's the only endpoint with this host:port
					s.hosts, s.sources = append(s.hosts, host), append(s.sources, lookup(host))
				}
			}
		}
	}
	return s
}

// hostOf returns the host:port of an endpoint, or "" if there's nothing to look up because its
// first address is an IP address or a Unix socket.
func hostOf(e discovery.Endpoint) string {
	if len(e.Addresses) == 0 {
		return ""
	}
	address := e.Addresses[0]
	if _, err := netip.ParseAddrPort(address); err == nil || strings.HasPrefix(address, "unix:") {
		return ""
	}
	return address
}

func (s *strictSource) Start(r *discovery.Receiver) (discovery.Started, error) {
	r.Trying("looking up " + printable.Count(len(s.hosts), "name", "names"))
	initial, known := make([]names.Name, len(s.hosts)), r.Remembered()
	for i, host := range s.hosts {
		initial[i] = names.Name{Addresses: known[host].Addresses, Held: names.Held{Until: known[host].Until}}
	}
	w := &strictSubscription{strictSource: s, receiver: r, set: names.New(initial, s.literals != nil)}
	for i, source := range s.sources {
		update, fail := func(a discovery.Answer) error { return w.found(i, a) }, func(err error) { w.failed(i, err) }
		started, err := source.Start(new(discovery.Receiver).With(discovery.Hooks{Update: update, Fail: fail}))
		if err != nil { // we still need the other names
			fail(err)
		}
		w.names = append(w.names, started)
	}
	w.events.Do(func() {
		w.holdTimer.Start(&w.events, names.Hold, func() {
			if w.set.Late() {
				w.publish()
			}
		})
	})
	return discovery.Started{Close: w.close, ResolveNow: w.resolveNow}, nil
}

func (s *strictSource) Check(read bool) error {
	for _, source := range s.sources {
		if err := source.Check(read); err != nil {
			return err
		}
	}
	return nil
}

type strictSubscription struct {
	*strictSource
	receiver *discovery.Receiver
	names    []discovery.Started
	closed   atomic.Bool

	events    serial.Serializer // guards the fields below
	set       *names.Set
	holdTimer serial.Timer

	lastUpdate time.Time
	paceTimer  serial.Timer // sends the next answer, or retries the last one
	rejections int
	lastLogged string
}

func (w *strictSubscription) close() {
	w.closed.Store(true)
	w.events.Run(func() {
		w.holdTimer.Stop()
		w.paceTimer.Stop()
	})
	for _, name := range w.names {
		if name.Close != nil {
			name.Close()
		}
	}
}

func (w *strictSubscription) resolveNow() {
	for _, name := range w.names {
		if name.ResolveNow != nil {
			name.ResolveNow()
		}
	}
}

// found treats an answer without addresses as a failure, because that's what gRPC's DNS resolver
// returns if a name doesn't exist.
func (w *strictSubscription) found(i int, a discovery.Answer) error {
	var addresses []string
	for _, e := range a.Resolved {
		for _, address := range e.Addresses {
			addresses = append(addresses, address.Addr)
		}
	}
	if len(addresses) == 0 {
		err := errors.New("its resolver returned no addresses")
		w.failed(i, err)
		return err
	}
	w.events.Run(func() {
		if w.set.Found(i, addresses) {
			w.publish()
		}
	})
	return nil
}

func (w *strictSubscription) failed(i int, err error) {
	w.events.Run(func() {
		if w.set.Failed(i, join.Stable(err), time.Now()) {
			w.publish()
		}
	})
}

// Every answer costs CPU time for every name. If there are many names, all of their lookups may end
// within seconds, so we wait a while between answers.
const pausePerName = 100 * time.Microsecond // about 30 times as long as it takes to build an answer

// If the channel rejects the answer, publish tries again after a backoff.
func (w *strictSubscription) publish() {
	if w.closed.Load() || !w.set.Ready() {
		return
	}
	if next := w.lastUpdate.Add(time.Duration(len(w.hosts)) * pausePerName); time.Now().Before(next) {
		w.paceTimer.Start(&w.events, time.Until(next), w.publish) // restart it even if it's running, since that may be the longer backoff
		return
	}
	w.lastUpdate = time.Now()
	flaws := w.set.Flaws(func(i int) string { return w.hosts[i] })
	known := make(map[string]discovery.Name, len(w.hosts))
	for i, n := range w.set.Names() {
		known[w.hosts[i]] = discovery.Name{Addresses: n.Addresses, Until: n.Until}
	}
	answer, hasEndpoints := w.resolve(known)
	if w.set.Fails(hasEndpoints) {
		w.receiver.Fail(errors.New(flaws))
		return
	}
	if flaws != "" && flaws != w.lastLogged {
		logger.Warningf("cluster %q: %s; the other names are used", w.cluster.Name, printable.Text(flaws))
	}
	w.lastLogged = flaws
	answer.Names = known
	if w.receiver.Update(answer) == nil {
		w.rejections = 0
		return
	}
	w.paceTimer.Start(&w.events, xnet.Backoff(w.rejections, rand.Float64()), w.publish)
	w.rejections++
}

// resolve replaces the cluster's host names with their addresses. If several names have the same
// address, only the first gets it. The additional addresses of an endpoint go to the first address
// of its name.
func (s *strictSource) resolve(names map[string]discovery.Name) (answer discovery.Answer, hasEndpoints bool) {
	answer = s.cluster.Answer
	answer.Identity = ""
	used := make(map[string]bool)
	add := func(address string) (added bool) {
		added = !used[address]
		used[address] = true
		return added
	}
	for _, address := range s.literals {
		add(address)
	}
	answer.Priorities = slices.Clone(answer.Priorities)
	for i, p := range answer.Priorities {
		localities := slices.Clone(p.Localities)
		for j, l := range localities {
			var list []discovery.Endpoint
			for _, e := range l.Endpoints {
				host := hostOf(e)
				if host == "" {
					list, hasEndpoints = append(list, e), true
				}
				for _, address := range names[host].Addresses {
					address, problem := topology.CanonicalAddress(address)
					if problem != "" || !add(address) {
						continue
					}
					found := e
					found.Addresses = []string{address}
					for _, additional := range e.Addresses[1:] {
						if add(additional) {
							found.Addresses = append(found.Addresses, additional)
						}
					}
					list, hasEndpoints = append(list, found), true
				}
			}
			localities[j].Endpoints = limitWeights(list)
		}
		answer.Priorities[i].Localities = localities
	}
	return answer, hasEndpoints
}

// Each address of a name has the name's full weight, so the sum may exceed the limit. In that case,
// we scale down the weights of the locality.
func limitWeights(list []discovery.Endpoint) []discovery.Endpoint {
	var sum float64
	for _, e := range list {
		sum += float64(e.Weight)
	}
	scale := min((math.MaxUint32-float64(len(list)))/sum, 1) // leaves room for rounding up to 1
	for i := range list {
		list[i].Weight = max(uint32(float64(list[i].Weight)*scale), 1)
	}
	return list
}
