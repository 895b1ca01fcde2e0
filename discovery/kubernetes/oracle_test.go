package kubernetes

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/understudy-lb/understudy/discovery"
)

// This file is the oracle: it computes the answer for a set of slices in a slow and simple way. A
// random test compares its results with those of the function answer.

type given struct {
	name, service, kind string
	priority, weight    int
	ports               []port
	endpoints           []givenEndpoint
}

type givenEndpoint struct {
	Addresses  []string           `json:"addresses"`
	Conditions map[string]*bool   `json:"conditions,omitempty"`
	TargetRef  map[string]string  `json:"targetRef,omitempty"`
	Zone       string             `json:"zone,omitempty"`
	NodeName   string             `json:"nodeName,omitempty"`
	Hints      map[string][]named `json:"hints,omitempty"`
}

type named struct {
	Name string `json:"name"`
}

// one is an endpoint as it appears in one slice. Other slices may contain the same endpoint.
type one struct {
	givenEndpoint
	kind             string
	port             int
	priority, weight int
	deleted          bool
	order            int
}

func (o one) is(condition string, otherwise bool) bool {
	if b := o.Conditions[condition]; b != nil {
		return *b
	}
	return otherwise
}

// If a condition is missing, ready and serving are true, and terminating is false. An endpoint that
// is ready and terminating counts as ready.
func (o one) ready() bool { return o.is("ready", true) }
func (o one) lastResort() bool {
	return !o.ready() && o.is("terminating", false) && o.is("serving", true)
}
func (o one) over() bool { return !o.ready() && o.is("terminating", false) && !o.is("serving", true) }

func (o one) rank() int {
	switch {
	case o.ready():
		return 3
	case o.lastResort():
		return 2
	case o.over():
		return 0
	}
	return 1
}

func (o one) address() string {
	host := o.Addresses[0]
	if o.kind == "IPv6" {
		host = "[" + host + "]"
	}
	return host + ":" + strconv.Itoa(o.port)
}

// identity returns targetRef.uid, or the address if there is none, and the port.
func (o one) identity() string {
	if uid := o.TargetRef["uid"]; uid != "" {
		return uid + " " + strconv.Itoa(o.port)
	}
	return o.address()
}

// same reports whether a and b are the same endpoint: they have the same address, or the same
// identity and address family.
func same(a, b one) bool {
	return a.address() == b.address() || a.identity() == b.identity() && a.kind == b.kind
}

// beats reports whether a is used instead of b, which is the same endpoint. If their conditions are
// equal, the order is arbitrary but fixed.
func beats(a, b one) bool {
	switch {
	case a.rank() != b.rank():
		return a.rank() > b.rank()
	case a.priority != b.priority:
		return a.priority < b.priority
	case a.weight != b.weight:
		return a.weight > b.weight
	case a.identity() != b.identity():
		return a.identity() < b.identity()
	}
	return a.order < b.order
}

// holds reports whether o is used, because no other entry for the same endpoint beats it.
func holds(o one, all []one) bool {
	for _, other := range all {
		if same(o, other) && beats(other, o) && holds(other, all) {
			return false
		}
	}
	return true
}

func choose(ports []port, want string) int {
	var tcp, h2 []port
	for _, p := range ports {
		if p.Protocol == "" || p.Protocol == "TCP" {
			tcp = append(tcp, p)
			if p.AppProtocol == "grpc" || p.AppProtocol == "kubernetes.io/h2c" {
				h2 = append(h2, p)
			}
		}
	}
	if n, err := strconv.Atoi(want); err == nil {
		return n
	}
	for _, p := range tcp {
		if p.Name == want && want != "" {
			return p.Port
		}
	}
	if want != "" {
		return 0
	}
	if len(tcp) == 1 {
		return tcp[0].Port
	}
	for _, p := range tcp {
		if p.Name == "grpc" {
			return p.Port
		}
	}
	if len(h2) == 1 {
		return h2[0].Port
	}
	return 0
}

// expected returns the lines of the expected answer. none means that no answer is expected.
func expected(q query, there, left []given) (lines []string, none bool) {
	var all []one
	portless := false
	for i, list := range [][]given{there, left} {
		for _, g := range list {
			if g.kind == "FQDN" || q.family != "" && g.kind != q.family || len(g.endpoints) == 0 {
				continue
			}
			port := choose(g.ports, q.port)
			if portless = portless || port == 0; port == 0 {
				continue
			}
			for _, e := range g.endpoints {
				o := one{e, g.kind, port, g.priority, max(g.weight, 1), i == 1, len(all)}
				// A deleted slice is used only for endpoints that are in no other slice.
				if i == 1 && slices.ContainsFunc(all, func(k one) bool {
					return !k.deleted && (k.identity() == o.identity() || k.address() == o.address())
				}) {
					continue
				}
				all = append(all, o)
			}
		}
	}
	if len(there)+len(left) == 0 || len(all) == 0 && portless {
		return nil, true
	}
	var held []one
	for _, o := range all {
		if holds(o, all) {
			held = append(held, o)
		}
	}
	return describe(q, held), false
}

func describe(q query, held []one) (lines []string) {
	anyReady := slices.ContainsFunc(held, one.ready)
	pods := make(map[string][]one)
	used := make(map[int]bool)
	for _, o := range held {
		pods[o.identity()] = append(pods[o.identity()], o)
	}
	best := func(pod []one) one {
		for _, o := range pod {
			if !slices.ContainsFunc(pod, func(other one) bool { return beats(other, o) }) {
				return o
			}
		}
		panic("unreachable")
	}
	for _, pod := range pods {
		if !best(pod).over() {
			used[best(pod).priority] = true
		}
	}
	ranks := slices.Sorted(maps.Keys(used))
	for _, pod := range pods {
		o := best(pod)
		health := discovery.Unhealthy
		switch {
		case o.over():
			continue
		case o.ready():
			health = discovery.Healthy
		case o.lastResort() && !anyReady && !q.never:
			health = discovery.Healthy
		case o.lastResort():
			health = discovery.Draining
		}
		var v4, v6 []string
		for _, o := range pod {
			if o.kind == "IPv4" {
				v4 = append(v4, o.address())
			} else {
				v6 = append(v6, o.address())
			}
		}
		lines = append(lines, fmt.Sprint(slices.Index(ranks, o.priority), o.Zone, append(v4, v6...), health, o.weight, o.NodeName, o.Hints["forZones"], o.Hints["forNodes"]))
	}
	slices.Sort(lines)
	return lines
}

func actual(a discovery.Answer) (lines []string) {
	hints := func(of []string) (all []named) {
		for _, n := range of {
			all = append(all, named{n})
		}
		return all
	}
	for i, p := range a.Priorities {
		for _, l := range p.Localities {
			for _, e := range l.Endpoints {
				lines = append(lines, fmt.Sprint(i, l.Zone, e.Addresses, e.Health, e.Weight, e.Node, hints(e.ForZones), hints(e.ForNodes)))
			}
		}
	}
	slices.Sort(lines)
	return lines
}

func (g given) parse(t *rapid.T) *slice {
	labels := map[string]string{serviceLabel: g.service}
	if g.priority > 0 {
		labels[priorityLabel] = strconv.Itoa(g.priority)
	}
	if g.weight > 0 {
		labels[weightLabel] = strconv.Itoa(g.weight)
	}
	type listed struct {
		Name        string `json:"name"`
		Port        int    `json:"port"`
		Protocol    string `json:"protocol,omitempty"`
		AppProtocol string `json:"appProtocol,omitempty"`
	}
	var ports []listed
	for _, p := range g.ports {
		ports = append(ports, listed(p))
	}
	text, err := json.Marshal(map[string]any{"metadata": map[string]any{"name": g.name, "labels": labels}, "addressType": g.kind, "endpoints": g.endpoints, "ports": ports})
	sl := new(slice)
	if err == nil {
		err = json.Unmarshal(text, sl)
	}
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return sl
}

func draw(prefix string) *rapid.Generator[[]given] {
	condition := rapid.SampledFrom([]*bool{nil, new(true), new(false)})
	return rapid.Custom(func(t *rapid.T) (all []given) {
		for i := range rapid.IntRange(0, 4).Draw(t, "slices") {
			g := given{
				name:     fmt.Sprint(prefix, i),
				service:  rapid.SampledFrom([]string{"web", "web", "web-canary"}).Draw(t, "service"),
				kind:     rapid.SampledFrom([]string{"IPv4", "IPv4", "IPv4", "IPv6", "IPv6", "FQDN"}).Draw(t, "kind"),
				priority: rapid.SampledFrom([]int{0, 0, 1, 5}).Draw(t, "priority"),
				weight:   rapid.SampledFrom([]int{0, 0, 1, 7}).Draw(t, "weight"),
				ports: rapid.SampledFrom([][]port{
					{{Name: "grpc", Port: 80}}, {{Name: "grpc", Port: 80}}, {{Name: "grpc", Port: 81}}, nil,
					{{Name: "a", Port: 1}, {Name: "b", Port: 2}}, {{Name: "a", Port: 1}, {Name: "grpc", Port: 80}},
					{{Name: "a", Port: 1, AppProtocol: "grpc"}, {Name: "b", Port: 2, AppProtocol: "kubernetes.io/h2c"}},
					{{Name: "a", Port: 1}, {Name: "b", Port: 80, AppProtocol: "kubernetes.io/h2c"}},
					{{Name: "grpc", Port: 80, Protocol: "UDP"}, {Name: "a", Port: 81, Protocol: "TCP"}},
				}).Draw(t, "ports"),
			}
			for range rapid.IntRange(0, 4).Draw(t, "endpoints") {
				n := rapid.IntRange(1, 4).Draw(t, "address")
				e := givenEndpoint{
					Addresses: []string{fmt.Sprint("10.0.0.", n), "10.9.9.9"}, Conditions: map[string]*bool{},
					Zone: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "zone"), NodeName: rapid.SampledFrom([]string{"", "n"}).Draw(t, "node"),
				}
				if g.kind == "IPv6" {
					e.Addresses = []string{fmt.Sprint("fd00::", n)}
				}
				for _, c := range []string{"ready", "serving", "terminating"} {
					e.Conditions[c] = condition.Draw(t, c)
				}
				if uid := rapid.SampledFrom([]string{"", "u", "v", "w"}).Draw(t, "uid"); uid != "" {
					e.TargetRef = map[string]string{"uid": uid}
				}
				if rapid.Bool().Draw(t, "hinted") {
					e.Hints = map[string][]named{"forZones": {{"a"}}, "forNodes": {{"n"}, {"m"}}}
				}
				g.endpoints = append(g.endpoints, e)
			}
			all = append(all, g)
		}
		return all
	})
}

// For random slices, the function answer must agree with the oracle in this file.
func TestTheSetIsThatOfTheSentences(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		there, left := draw("s").Draw(t, "there"), draw("l").Draw(t, "left")
		if rapid.IntRange(0, 3).Draw(t, "none is deleted") > 0 {
			left = nil
		}
		q := query{
			namespace: "shop", services: "web,web-canary",
			port:   rapid.SampledFrom([]string{"", "", "grpc", "80", "b"}).Draw(t, "port"),
			never:  rapid.Bool().Draw(t, "never"),
			family: rapid.SampledFrom([]string{"", "", "IPv4", "IPv6"}).Draw(t, "family"),
		}
		of := &snapshot{there: make(map[string]*slice), left: make(map[string]*slice)}
		for _, g := range there {
			of.there[g.name] = g.parse(t)
		}
		for _, g := range left {
			of.left[g.name] = g.parse(t)
		}
		want, none := expected(q, there, left)
		a, err := answer(q, of)
		if (err != nil) != none {
			t.Fatalf("the error is %v, want one: %v", err, none)
		}
		if got := actual(a); err == nil && (!slices.Equal(got, want) || !a.Empty) {
			t.Fatalf("the answer is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}
