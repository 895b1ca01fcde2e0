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
	"github.com/understudy-lb/understudy/internal/text/printable"
)

// This file converts slices to an answer. The code accesses neither the network nor the clock.

const (
	maxPriority = 127
	maxWeight   = 1000
	maxNotes    = 20
)

type candidate struct {
	rank
	priority, weight int
	address, family  string
	id               string // of the pod and the port; equal in both address families
	endpoint         *endpoint
}

// compareCandidates orders candidates by condition (best first), then by priority, then by weight
// (greatest first).
func compareCandidates(a, b candidate) int {
	return cmp.Or(cmp.Compare(b.rank, a.rank), cmp.Compare(a.priority, b.priority), cmp.Compare(b.weight, a.weight),
		cmp.Compare(a.id, b.id))
}

type answerBuilder struct {
	query
	candidates     []candidate
	notes          map[string]bool
	listedPorts    map[string]bool
	seenServices   map[string]bool
	portErr        error
	hasUnknownPort bool   // whether the port of a slice with endpoints is unknown
	omitReason     string // of the first endpoint or slice that was left out
}

func (s *answerBuilder) note(format string, args ...any) {
	if len(s.notes) < maxNotes {
		s.notes[printable.Line(fmt.Sprintf(format, args...), 300)] = true
	}
}

// omit adds a note that an endpoint or a slice is left out. If no endpoint remains, the errors of
// calls contain the first of these notes.
func (s *answerBuilder) omit(format string, args ...any) {
	if s.omitReason == "" {
		s.omitReason = printable.Text(fmt.Sprintf(format, args...))
	}
	s.note(format, args...)
}

// answer converts a snapshot to an answer. An endpoint of a deleted slice is used only if no
// existing slice contains it.
func answer(q query, snap *snapshot) (discovery.Answer, error) {
	s := &answerBuilder{query: q, notes: map[string]bool{}, listedPorts: map[string]bool{}, seenServices: map[string]bool{}}
	if len(snap.existing)+len(snap.deleted) == 0 {
		return discovery.Answer{}, discovery.Mistake(fmt.Errorf("no EndpointSlice of %s: %s", s, cmp.Or(snap.problem, snap.reason, defaultReason)))
	}
	for _, text := range snap.notes {
		s.note("%s", text)
	}
	s.addSlices(snap.existing)
	known := make(map[string]bool)
	for _, i := range s.candidates {
		known[i.id], known[i.address] = true, true
	}
	existingCount := len(s.candidates)
	s.addSlices(snap.deleted)
	s.candidates = append(s.candidates[:existingCount:existingCount], slices.DeleteFunc(s.candidates[existingCount:], func(i candidate) bool { return known[i.id] || known[i.address] })...)
	for service := range strings.SplitSeq(q.services, ",") {
		if !s.seenServices[service] {
			s.note("Service %s has no EndpointSlice", service)
		}
	}
	if len(s.candidates) == 0 && s.hasUnknownPort {
		return discovery.Answer{}, discovery.Mistake(unknownPortError{s.portErr})
	}
	if n, err := strconv.Atoi(q.port); err == nil && len(s.listedPorts) > 0 && !s.hasPort(n) {
		s.note("port %d is not a port of the pods (%s); want the pod's port, not the Service's", n, s.ports())
	}
	return s.build(), nil
}

// unknownPortError means that there are pods, but that their port is unknown. The last answer stays
// in use, because a Service that gets a second port still has the same pods. Once none of these
// exists any more, calls could only fail with "connection refused": they must fail with this error
// instead.
type unknownPortError struct{ error }

// hasPodOf reports whether a pod of an earlier answer still exists.
func (s *snapshot) hasPodOf(a *discovery.Answer) bool {
	pods := make(map[netip.Addr]bool)
	for _, sl := range s.existing {
		for _, e := range sl.Endpoints {
			if ip, err := netip.ParseAddr(e.address); err == nil && e.rank != rankGone {
				pods[ip] = true
			}
		}
	}
	for _, p := range a.Priorities {
		for _, l := range p.Localities {
			for _, e := range l.Endpoints {
				for _, address := range e.Addresses {
					if known, err := netip.ParseAddrPort(address); err == nil && pods[known.Addr()] {
						return true
					}
				}
			}
		}
	}
	return false
}

func (q query) String() string {
	if q.namespace == "" {
		return q.services
	}
	return q.services + "." + q.namespace
}

func (s *answerBuilder) addSlices(all map[string]*slice) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		sl := all[name]
		s.seenServices[sl.Metadata.Labels[serviceLabel]] = true
		if sl.AddressType != "IPv4" && sl.AddressType != "IPv6" {
			s.omit("slice %s has the address type %q, want IPv4 or IPv6", name, sl.AddressType)
			continue
		}
		if s.family != "" && sl.AddressType != s.family || len(sl.Endpoints) == 0 {
			continue
		}
		number, err := s.portOf(sl)
		if err != nil {
			s.hasUnknownPort, s.portErr = true, fmt.Errorf("slice %s of %s: %w", name, s, err)
			s.note("slice %s: %v", name, err)
			continue
		}
		priority := s.labelValue(sl, priorityLabel, 0, maxPriority, 0)
		weight := s.labelValue(sl, weightLabel, 1, maxWeight, 1)
		for i := range sl.Endpoints {
			s.add(sl, &sl.Endpoints[i], number, priority, weight)
		}
	}
}

func (s *answerBuilder) add(sl *slice, e *endpoint, number, priority, weight int) {
	if e.address == "" {
		return
	}
	ip, err := netip.ParseAddr(e.address)
	if err != nil || ip.Is4() != (sl.AddressType == "IPv4") || ip.Zone() != "" {
		s.omit("slice %s has the address %q, want one of %s", sl.Metadata.Name, e.address, sl.AddressType)
		return
	}
	i := candidate{e.rank, priority, weight, netip.AddrPortFrom(ip, uint16(number)).String(), sl.AddressType, "", e} //nolint:gosec // portOf keeps it below 65536
	if i.id = i.address; e.uid != "" {
		i.id = e.uid + " " + strconv.Itoa(number)
	}
	s.candidates = append(s.candidates, i)
}

// labelValue returns the value of a numeric label, or defaultValue if the label is absent or
// invalid.
func (s *answerBuilder) labelValue(sl *slice, name string, minValue, maxValue, defaultValue int) int {
	text, isSet := sl.Metadata.Labels[name]
	if !isSet {
		return defaultValue
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < minValue || n > maxValue {
		s.note("slice %s has the label %s=%q, want a number from %d to %d", sl.Metadata.Name, name, text, minValue, maxValue)
		return defaultValue
	}
	return n
}

func (s *answerBuilder) portOf(sl *slice) (int, error) {
	ports := slices.DeleteFunc(slices.Clone(sl.Ports), func(p port) bool {
		return p.Protocol != "" && p.Protocol != "TCP" || p.Port < 1 || p.Port > 65535
	})
	for _, p := range ports {
		s.listedPorts[fmt.Sprintf("%s:%d", p.Name, p.Port)] = true
	}
	if n, err := strconv.Atoi(s.port); err == nil {
		return n, nil
	}
	findPort := func(matches func(port) bool) int {
		i := slices.IndexFunc(ports, matches)
		if i < 0 || s.port == "" && slices.ContainsFunc(ports[i+1:], matches) {
			return 0
		}
		return ports[i].Port
	}
	found := 0
	if s.port != "" {
		found = findPort(func(p port) bool { return p.Name == s.port })
	} else {
		found = cmp.Or(findPort(func(port) bool { return true }), findPort(func(p port) bool { return p.Name == "grpc" }),
			findPort(func(p port) bool { return p.AppProtocol == "grpc" || p.AppProtocol == "kubernetes.io/h2c" }))
	}
	switch {
	case found != 0:
		return found, nil
	case len(ports) == 0:
		return 0, fmt.Errorf("it lists no TCP port; want a port number in the target")
	case s.port == "":
		return 0, fmt.Errorf("the target gives no port; want one of %s", s.ports())
	}
	return 0, fmt.Errorf("no port has the name %q, want one of %s", s.port, s.ports())
}

func (s *answerBuilder) ports() string {
	return printable.Text(strings.Join(slices.Sorted(maps.Keys(s.listedPorts)), ", "))
}

func (s *answerBuilder) hasPort(n int) bool {
	for p := range s.listedPorts {
		if strings.HasSuffix(p, ":"+strconv.Itoa(n)) {
			return true
		}
	}
	return false
}

// build converts the candidates to an answer. If several candidates have the same address, or the
// same pod and address family, build uses the best of them.
func (s *answerBuilder) build() discovery.Answer {
	slices.SortStableFunc(s.candidates, compareCandidates)
	usedAddresses, pods := make(map[string]bool), make(map[string][]candidate)
	var order []string
	anyReady := false
	for _, i := range s.candidates {
		if usedAddresses[i.address] || slices.ContainsFunc(pods[i.id], func(o candidate) bool { return o.family == i.family }) {
			continue
		}
		usedAddresses[i.address] = true
		anyReady = anyReady || i.rank == rankReady
		if pods[i.id] == nil {
			order = append(order, i.id)
		}
		pods[i.id] = append(pods[i.id], i)
	}
	byPriority := make(map[int]map[string][]discovery.Endpoint)
	for _, id := range order {
		best := pods[id][0]
		if best.rank == rankGone {
			continue
		}
		if byPriority[best.priority] == nil {
			byPriority[best.priority] = make(map[string][]discovery.Endpoint)
		}
		zones := byPriority[best.priority]
		zones[best.endpoint.zone] = append(zones[best.endpoint.zone], newEndpoint(pods[id], !anyReady && !s.neverTerminating))
	}
	return s.newAnswer(byPriority)
}

// newEndpoint returns the endpoint of a pod from its candidates, the best of which is first. If
// lastResort is set, the endpoint gets calls even while it terminates.
func newEndpoint(candidates []candidate, lastResort bool) discovery.Endpoint {
	best := candidates[0]
	e := discovery.Endpoint{Weight: uint32(best.weight), Health: discovery.Healthy, Node: best.endpoint.node} //nolint:gosec // at most maxWeight
	switch {
	case best.rank == rankWaiting:
		e.Health = discovery.Unhealthy
	case best.rank == rankDraining && !lastResort:
		e.Health = discovery.Draining
	}
	candidates = slices.Clone(candidates)
	slices.SortFunc(candidates, func(a, b candidate) int { return cmp.Compare(a.family, b.family) })
	for _, i := range candidates {
		e.Addresses = append(e.Addresses, i.address)
	}
	e.ForZones, e.ForNodes = best.endpoint.forZones, best.endpoint.forNodes
	return e
}

// newAnswer returns the answer in an order that does not depend on how the endpoints are
// distributed over slices.
func (s *answerBuilder) newAnswer(byPriority map[int]map[string][]discovery.Endpoint) discovery.Answer {
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
		if s.omitReason != "" {
			a.Why += "; " + s.omitReason
		}
	}
	return a
}
