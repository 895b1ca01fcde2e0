package kubernetes

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/printable"
)

// This file converts slices to an answer. The code uses neither the network nor the clock.

const (
	maxPriority = 127
	maxWeight   = 1000
	maxNotes    = 20
)

type item struct {
	rank
	priority, weight int
	address, family  string
	id               string // identifies the pod and the port, in both address families
	of               *endpoint
}

// better orders items by condition (best first), then by priority, then by weight (greatest first).
func better(a, b item) int {
	return cmp.Or(cmp.Compare(b.rank, a.rank), cmp.Compare(a.priority, b.priority), cmp.Compare(b.weight, a.weight),
		cmp.Compare(a.id, b.id))
}

type set struct {
	query
	items   []item
	notes   map[string]bool
	listed  map[string]bool
	seen    map[string]bool
	failed  error
	mute    bool   // a slice with endpoints has an unknown port
	omitted string // the first reason why something was left out
}

func (s *set) note(format string, args ...any) {
	if len(s.notes) < maxNotes {
		s.notes[printable.Line(fmt.Sprintf(format, args...), 300)] = true
	}
}

// omit notes why an endpoint or a slice is left out. If no endpoint remains, the errors of calls
// contain the first of these reasons.
func (s *set) omit(format string, args ...any) {
	if s.omitted == "" {
		s.omitted = printable.Text(fmt.Sprintf(format, args...))
	}
	s.note(format, args...)
}

// answer converts a snapshot to an answer. An endpoint of a deleted slice is used only if no
// existing slice contains it.
func answer(q query, of *snapshot) (discovery.Answer, error) {
	s := &set{query: q, notes: map[string]bool{}, listed: map[string]bool{}, seen: map[string]bool{}}
	if len(of.there)+len(of.left) == 0 {
		return discovery.Answer{}, discovery.Mistake(fmt.Errorf("no EndpointSlice of %s: %s", s, cmp.Or(of.wrong, of.why, whyNone)))
	}
	for _, text := range of.notes {
		s.note("%s", text)
	}
	s.read(of.there)
	known := make(map[string]bool)
	for _, i := range s.items {
		known[i.id], known[i.address] = true, true
	}
	live := len(s.items)
	s.read(of.left)
	s.items = append(s.items[:live:live], slices.DeleteFunc(s.items[live:], func(i item) bool { return known[i.id] || known[i.address] })...)
	for service := range strings.SplitSeq(q.services, ",") {
		if !s.seen[service] {
			s.note("Service %s has no EndpointSlice", service)
		}
	}
	if len(s.items) == 0 && s.mute {
		return discovery.Answer{}, discovery.Mistake(s.failed)
	}
	if n, err := strconv.Atoi(q.port); err == nil && len(s.listed) > 0 && !s.lists(n) {
		s.note("port %d is none of the pods' (%s); a target has the pod's port, not the Service's", n, s.ports())
	}
	return s.build(), nil
}

func (q query) String() string {
	if q.namespace == "" {
		return q.services
	}
	return q.services + "." + q.namespace
}

func (s *set) read(all map[string]*slice) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		sl := all[name]
		s.seen[sl.Metadata.Labels[serviceLabel]] = true
		if sl.AddressType != "IPv4" && sl.AddressType != "IPv6" {
			s.omit("slice %s has the address type %q, want IPv4 or IPv6", name, sl.AddressType)
			continue
		}
		if s.family != "" && sl.AddressType != s.family || len(sl.Endpoints) == 0 {
			continue
		}
		number, err := s.portOf(sl)
		if err != nil {
			s.mute, s.failed = true, fmt.Errorf("slice %s of %s: %w", name, s, err)
			s.note("slice %s: %v", name, err)
			continue
		}
		priority := s.number(sl, priorityLabel, 0, maxPriority, 0)
		weight := s.number(sl, weightLabel, 1, maxWeight, 1)
		for i := range sl.Endpoints {
			s.add(sl, &sl.Endpoints[i], number, priority, weight)
		}
	}
}

func (s *set) add(sl *slice, e *endpoint, number, priority, weight int) {
	if e.address == "" {
		return
	}
	ip, err := netip.ParseAddr(e.address)
	if err != nil || ip.Is4() != (sl.AddressType == "IPv4") || ip.Zone() != "" {
		s.omit("slice %s has the address %q, want one of %s", sl.Metadata.Name, e.address, sl.AddressType)
		return
	}
	i := item{e.rank, priority, weight, netip.AddrPortFrom(ip, uint16(number)).String(), sl.AddressType, "", e} //nolint:gosec // portOf keeps it below 65536
	if i.id = i.address; e.uid != "" {
		i.id = e.uid + " " + strconv.Itoa(number)
	}
	s.items = append(s.items, i)
}

// number returns the value of a numeric label. If the label is absent or invalid, it returns the
// argument otherwise.
func (s *set) number(sl *slice, name string, least, most, otherwise int) int {
	text, given := sl.Metadata.Labels[name]
	if !given {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		s.note("slice %s has the label %s=%q, want a number from %d to %d", sl.Metadata.Name, name, text, least, most)
		return otherwise
	}
	return n
}

func (s *set) portOf(sl *slice) (int, error) {
	ports := slices.DeleteFunc(slices.Clone(sl.Ports), func(p port) bool {
		return p.Protocol != "" && p.Protocol != "TCP" || p.Port < 1 || p.Port > 65535
	})
	for _, p := range ports {
		s.listed[fmt.Sprintf("%s:%d", p.Name, p.Port)] = true
	}
	if n, err := strconv.Atoi(s.port); err == nil {
		return n, nil
	}
	one := func(is func(port) bool) int {
		i := slices.IndexFunc(ports, is)
		if i < 0 || s.port == "" && slices.ContainsFunc(ports[i+1:], is) {
			return 0
		}
		return ports[i].Port
	}
	found := 0
	if s.port != "" {
		found = one(func(p port) bool { return p.Name == s.port })
	} else {
		found = cmp.Or(one(func(port) bool { return true }), one(func(p port) bool { return p.Name == "grpc" }),
			one(func(p port) bool { return p.AppProtocol == "grpc" || p.AppProtocol == "kubernetes.io/h2c" }))
	}
	switch {
	case found != 0:
		return found, nil
	case len(ports) == 0:
		return 0, fmt.Errorf("it lists no TCP port; want the number of one in the target")
	case s.port == "":
		return 0, fmt.Errorf("the target gives no port; want one of %s", s.ports())
	}
	return 0, fmt.Errorf("no port has the name %q, want one of %s", s.port, s.ports())
}

func (s *set) ports() string {
	return printable.Text(strings.Join(slices.Sorted(maps.Keys(s.listed)), ", "))
}

func (s *set) lists(n int) bool {
	for p := range s.listed {
		if strings.HasSuffix(p, ":"+strconv.Itoa(n)) {
			return true
		}
	}
	return false
}

// build converts the items to an answer. If several items have the same address, or the same pod
// and address family, it uses the best of them.
func (s *set) build() discovery.Answer {
	slices.SortStableFunc(s.items, better)
	taken, pods := make(map[string]bool), make(map[string][]item)
	var order []string
	anyReady := false
	for _, i := range s.items {
		if taken[i.address] || slices.ContainsFunc(pods[i.id], func(o item) bool { return o.family == i.family }) {
			continue
		}
		taken[i.address] = true
		anyReady = anyReady || i.rank == ready
		if pods[i.id] == nil {
			order = append(order, i.id)
		}
		pods[i.id] = append(pods[i.id], i)
	}
	byPriority := make(map[int]map[string][]discovery.Endpoint)
	for _, id := range order {
		best := pods[id][0]
		if best.rank == gone {
			continue
		}
		if byPriority[best.priority] == nil {
			byPriority[best.priority] = make(map[string][]discovery.Endpoint)
		}
		zones := byPriority[best.priority]
		zones[best.of.zone] = append(zones[best.of.zone], made(pods[id], !anyReady && !s.never))
	}
	return s.sorted(byPriority)
}

// made returns the endpoint of a pod. of holds its items, best first. If last is set, the endpoint
// gets calls even while it terminates.
func made(of []item, last bool) discovery.Endpoint {
	best := of[0]
	e := discovery.Endpoint{Weight: uint32(best.weight), Health: discovery.Healthy, Node: best.of.node} //nolint:gosec // at most maxWeight
	switch {
	case best.rank == waiting:
		e.Health = discovery.Unhealthy
	case best.rank == draining && !last:
		e.Health = discovery.Draining
	}
	of = slices.Clone(of)
	slices.SortFunc(of, func(a, b item) int { return cmp.Compare(a.family, b.family) })
	for _, i := range of {
		e.Addresses = append(e.Addresses, i.address)
	}
	e.ForZones, e.ForNodes = best.of.forZones, best.of.forNodes
	return e
}

// sorted returns the answer in an order that does not depend on how the endpoints are divided into
// slices.
func (s *set) sorted(byPriority map[int]map[string][]discovery.Endpoint) discovery.Answer {
	a := discovery.Answer{Service: s.String(), Empty: true, Notes: slices.Sorted(maps.Keys(s.notes))}
	for _, p := range slices.Sorted(maps.Keys(byPriority)) {
		var priority discovery.Priority
		for _, zone := range slices.Sorted(maps.Keys(byPriority[p])) {
			all := byPriority[p][zone]
			slices.SortFunc(all, func(a, b discovery.Endpoint) int { return cmp.Compare(a.Addresses[0], b.Addresses[0]) })
			priority.Localities = append(priority.Localities, discovery.Locality{Zone: zone, Endpoints: all})
		}
		a.Priorities = append(a.Priorities, priority)
	}
	if len(a.Priorities) == 0 {
		a.Why = "Service " + s.String() + " has no pods that serve"
		if s.omitted != "" {
			a.Why += "; " + s.omitted
		}
	}
	return a
}
