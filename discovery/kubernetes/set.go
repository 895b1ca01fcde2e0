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

// This file turns slices into an answer. It uses neither the network nor a clock.

const (
	maxPriority = 127
	maxWeight   = 1000
	maxNotes    = 20
)

type candidate struct {
	*endpoint
	priority, weight int
	address, family  string // the address includes the port
	id               string // identifies the pod and port, so it's the same in both address families
}

type answerBuilder struct {
	query
	candidates   []candidate
	notes        map[string]bool
	listedPorts  map[string]bool
	seenServices map[string]bool
	portErr      error           // set if a slice has endpoints but we don't know their port
	known        map[string]bool // IDs and addresses in existing slices; nil until we've added all of those
}

func (s *answerBuilder) note(format string, args ...any) {
	if len(s.notes) < maxNotes {
		s.notes[printable.Line(fmt.Sprintf(format, args...), 300)] = true
	}
}

func answer(q query, snap *snapshot) (discovery.Answer, error) {
	// An endpoint in a deleted slice only counts if it isn't in any of the existing ones.
	s := &answerBuilder{query: q, notes: map[string]bool{}, listedPorts: map[string]bool{}, seenServices: map[string]bool{}}
	reason := cmp.Or(snap.reason, defaultReason)
	for _, text := range snap.notes {
		s.note("%s", text)
		if isAboutSlice(text) { // there is a slice, but we can't use it
			reason = text
		}
	}
	if len(snap.existing)+len(snap.deleted) == 0 {
		return discovery.Answer{}, fmt.Errorf("no EndpointSlice of %s: %s", s, reason)
	}
	s.addSlices(snap.existing)
	s.known = make(map[string]bool)
	for _, c := range s.candidates {
		s.known[c.id], s.known[c.address] = true, true
	}
	s.addSlices(snap.deleted)
	for service := range strings.SplitSeq(q.services, ",") {
		if !s.seenServices[service] {
			s.note("Service %s has no EndpointSlice", service)
		}
	}
	if len(s.candidates) == 0 && s.portErr != nil {
		return discovery.Answer{}, unknownPortError{s.portErr}
	}
	if n, err := strconv.Atoi(q.port); err == nil && len(s.listedPorts) > 0 && !strings.Contains(s.ports()+",", fmt.Sprintf(":%d,", n)) {
		s.note("port %d is not a port of the pods (%s); want the pod's port, not the Service's", n, s.ports())
	}
	return s.build(), nil
}

func isAboutSlice(note string) bool { return strings.HasPrefix(note, "slice ") }

// unknownPortError means that there are pods but we can't tell which port to use. If that's because
// the Service got a second port, it still has the same pods, so we keep using the last answer. Once
// those pods are all gone, calls fail with this error instead of "connection refused".
type unknownPortError struct{ error }

func (s *snapshot) hasPodOf(a *discovery.Answer) bool {
	pods := make(map[netip.Addr]bool)
	for _, sl := range s.existing {
		for _, e := range sl.endpoints {
			if ip, err := netip.ParseAddr(e.address); err == nil && e.rank != rankGone {
				pods[ip] = true
			}
		}
	}
	exists := func(address string) bool {
		pod, err := netip.ParseAddrPort(address)
		return err == nil && pods[pod.Addr()]
	}
	for _, p := range a.Priorities {
		for _, l := range p.Localities {
			if slices.ContainsFunc(l.Endpoints, func(e discovery.Endpoint) bool { return slices.ContainsFunc(e.Addresses, exists) }) {
				return true
			}
		}
	}
	return false
}

func (q query) String() string {
	return strings.TrimSuffix(q.services+"."+q.namespace, ".")
}

func (s *answerBuilder) addSlices(all map[string]*slice) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		sl := all[name]
		s.seenServices[sl.Service] = true
		if sl.addressType != "IPv4" && sl.addressType != "IPv6" {
			s.note("slice %s has the address type %q, want IPv4 or IPv6", name, sl.addressType)
			continue
		}
		if s.family != "" && sl.addressType != s.family || len(sl.endpoints) == 0 {
			continue
		}
		number, err := s.portOf(sl)
		if err != nil {
			s.portErr = fmt.Errorf("slice %s of %s: %w", name, s, err)
			s.note("slice %s: %v", name, err)
			continue
		}
		priority := s.labelValue(sl, priorityLabel, sl.Priority, 0, maxPriority)
		weight := s.labelValue(sl, weightLabel, sl.Weight, 1, maxWeight)
		for i := range sl.endpoints {
			s.add(sl, &sl.endpoints[i], number, priority, weight)
		}
	}
}

func (s *answerBuilder) add(sl *slice, e *endpoint, number, priority, weight int) {
	if e.address == "" {
		return
	}
	ip, err := netip.ParseAddr(e.address)
	if err != nil || ip.Is4() != (sl.addressType == "IPv4") || ip.Zone() != "" {
		s.note("slice %s has the address %q, want one of %s", sl.name, e.address, sl.addressType)
		return
	}
	address := netip.AddrPortFrom(ip, uint16(number)).String() //nolint:gosec // portOf makes sure it fits
	c := candidate{e, priority, weight, address, sl.addressType, address}
	if e.uid != "" {
		c.id = e.uid + " " + strconv.Itoa(number)
	}
	if !s.known[c.id] && !s.known[c.address] {
		s.candidates = append(s.candidates, c)
	}
}

func (s *answerBuilder) labelValue(sl *slice, name, text string, minValue, maxValue int) int {
	n, err := strconv.Atoi(text)
	if err == nil && minValue <= n && n <= maxValue {
		return n
	}
	if text != "" {
		s.note("slice %s has the label %s=%q, want a number from %d to %d", sl.name, name, text, minValue, maxValue)
	}
	return minValue
}

func (s *answerBuilder) portOf(sl *slice) (int, error) {
	ports := slices.DeleteFunc(slices.Clone(sl.ports), func(p port) bool {
		return p.Protocol != "" && p.Protocol != "TCP" || p.Port < 1 || p.Port > 65535
	})
	for _, p := range ports {
		s.listedPorts[fmt.Sprintf("%s:%d", p.Name, p.Port)] = true
	}
	if n, err := strconv.Atoi(s.port); err == nil {
		return n, nil
	}
	only := func(matches func(port) bool) int {
		i := slices.IndexFunc(ports, matches)
		if i < 0 || slices.ContainsFunc(ports[i+1:], matches) {
			return 0
		}
		return ports[i].Port
	}
	found := only(func(p port) bool { return s.port == "" || p.Name == s.port })
	if s.port == "" {
		found = cmp.Or(found, only(func(p port) bool { return p.Name == "grpc" }),
			only(func(p port) bool { return p.AppProtocol == "grpc" || p.AppProtocol == "kubernetes.io/h2c" }))
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

func (s *answerBuilder) build() discovery.Answer {
	// Make sure that the order doesn't depend on how endpoints are spread over slices. If several
	// candidates have the same address, or the same pod and address family, we use the best one.
	slices.SortStableFunc(s.candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.rank, a.rank), cmp.Compare(a.priority, b.priority), cmp.Compare(b.weight, a.weight),
			cmp.Compare(a.id, b.id), cmp.Compare(a.family, b.family))
	})
	lastResort := !s.neverTerminating && len(s.candidates) > 0 && s.candidates[0].rank != rankReady
	usedAddresses, pods := make(map[string]bool), make(map[string][]candidate)
	for _, c := range s.candidates {
		if usedAddresses[c.address] || slices.ContainsFunc(pods[c.id], func(o candidate) bool { return o.family == c.family }) {
			continue
		}
		usedAddresses[c.address] = true
		pods[c.id] = append(pods[c.id], c)
	}
	all := slices.DeleteFunc(slices.Collect(maps.Values(pods)), func(pod []candidate) bool { return pod[0].rank == rankGone })
	slices.SortFunc(all, func(a, b []candidate) int {
		return cmp.Or(cmp.Compare(a[0].priority, b[0].priority), cmp.Compare(a[0].zone, b[0].zone), cmp.Compare(a[0].address, b[0].address))
	})
	a := discovery.Answer{Service: s.String(), Empty: true, Notes: slices.Sorted(maps.Keys(s.notes))}
	for i, pod := range all {
		isNew := i == 0 || pod[0].priority != all[i-1][0].priority
		if isNew {
			a.Priorities = append(a.Priorities, discovery.Priority{})
		}
		zones := &a.Priorities[len(a.Priorities)-1].Localities
		if isNew || pod[0].zone != all[i-1][0].zone {
			*zones = append(*zones, discovery.Locality{Zone: pod[0].zone})
		}
		zone := &(*zones)[len(*zones)-1]
		zone.Endpoints = append(zone.Endpoints, newEndpoint(pod, lastResort))
	}
	if len(all) == 0 {
		a.Why = "Service " + s.String() + " has no pods that serve"
		if i := slices.IndexFunc(a.Notes, isAboutSlice); i >= 0 {
			a.Why += "; " + a.Notes[i]
		}
	}
	return a
}

// The best candidate of the pod must come first.
func newEndpoint(pod []candidate, lastResort bool) discovery.Endpoint {
	best := pod[0]
	e := discovery.Endpoint{Weight: uint32(best.weight), Health: discovery.Healthy, ForZones: best.forZones, ForNodes: best.forNodes} //nolint:gosec // at most maxWeight
	switch {
	case best.rank == rankWaiting:
		e.Health = discovery.Unhealthy
	case best.rank == rankDraining && !lastResort:
		e.Health = discovery.Draining
	}
	for _, c := range pod {
		e.Addresses = append(e.Addresses, c.address)
	}
	if best.family == "IPv6" {
		slices.Reverse(e.Addresses) // IPv4 goes first
	}
	return e
}
