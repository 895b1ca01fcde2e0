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

// This file contains an oracle, which computes the answer for a set of slices in a slow and simple
// way. A random test compares its results with those of the function answer.

type modelSlice struct {
	name, service, kind string
	priority, weight    int
	ports               []port
	endpoints           []modelEndpoint
}

type modelEndpoint struct {
	Addresses  []string               `json:"addresses"`
	Conditions map[string]*bool       `json:"conditions,omitempty"`
	TargetRef  map[string]string      `json:"targetRef,omitempty"`
	Zone       string                 `json:"zone,omitempty"`
	NodeName   string                 `json:"nodeName,omitempty"`
	Hints      map[string][]modelHint `json:"hints,omitempty"`
}

type modelHint struct {
	Name string `json:"name"`
}

// modelEntry is an endpoint in one slice. Other slices may contain the same endpoint.
type modelEntry struct {
	modelEndpoint
	kind             string
	port             int
	priority, weight int
	deleted          bool
	order            int
}

func (o modelEntry) conditionOr(condition string, fallback bool) bool {
	if b := o.Conditions[condition]; b != nil {
		return *b
	}
	return fallback
}

// ready counts an endpoint that is both ready and terminating as ready. If a condition is missing,
// ready and serving are true, and terminating is false.
func (o modelEntry) ready() bool { return o.conditionOr("ready", true) }
func (o modelEntry) isLastResort() bool {
	return !o.ready() && o.conditionOr("terminating", false) && o.conditionOr("serving", true)
}
func (o modelEntry) isGone() bool {
	return !o.ready() && o.conditionOr("terminating", false) && !o.conditionOr("serving", true)
}

func (o modelEntry) rank() int {
	switch {
	case o.ready():
		return 3
	case o.isLastResort():
		return 2
	case o.isGone():
		return 0
	}
	return 1
}

func (o modelEntry) address() string {
	host := o.Addresses[0]
	if o.kind == "IPv6" {
		host = "[" + host + "]"
	}
	return host + ":" + strconv.Itoa(o.port)
}

// identity returns the port and targetRef.uid, or the address if there is no targetRef.uid.
func (o modelEntry) identity() string {
	if uid := o.TargetRef["uid"]; uid != "" {
		return uid + " " + strconv.Itoa(o.port)
	}
	return o.address()
}

// isSameEndpoint reports whether a and b have the same address, or the same identity and address
// family.
func isSameEndpoint(a, b modelEntry) bool {
	return a.address() == b.address() || a.identity() == b.identity() && a.kind == b.kind
}

// isBetter reports whether a is used instead of b, which is the same endpoint. If their conditions
// are equal, the order is arbitrary but fixed.
func isBetter(a, b modelEntry) bool {
	switch {
	case a.rank() != b.rank():
		return a.rank() > b.rank()
	case a.priority != b.priority:
		return a.priority < b.priority
	case a.weight != b.weight:
		return a.weight > b.weight
	case a.identity() != b.identity():
		return a.identity() < b.identity()
	case a.kind != b.kind:
		return a.kind == "IPv4"
	}
	return a.order < b.order
}

// isUsed reports whether o is used, which is the case if no better entry for the same endpoint is.
func isUsed(o modelEntry, all []modelEntry) bool {
	for _, other := range all {
		if isSameEndpoint(o, other) && isBetter(other, o) && isUsed(other, all) {
			return false
		}
	}
	return true
}

func choosePort(ports []port, want string) int {
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

// expected returns the lines of the expected answer. If wantErr is set, an error is expected
// instead.
func expected(q query, existing, deleted []modelSlice) (lines []string, wantErr bool) {
	var all []modelEntry
	hasUnknownPort := false
	for i, list := range [][]modelSlice{existing, deleted} {
		for _, g := range list {
			if g.kind == "FQDN" || q.family != "" && g.kind != q.family || len(g.endpoints) == 0 {
				continue
			}
			port := choosePort(g.ports, q.port)
			if hasUnknownPort = hasUnknownPort || port == 0; port == 0 {
				continue
			}
			for _, e := range g.endpoints {
				o := modelEntry{e, g.kind, port, g.priority, max(g.weight, 1), i == 1, len(all)}
				// An endpoint of a deleted slice is used only if no existing slice contains it.
				if i == 1 && slices.ContainsFunc(all, func(k modelEntry) bool {
					return !k.deleted && (k.identity() == o.identity() || k.address() == o.address())
				}) {
					continue
				}
				all = append(all, o)
			}
		}
	}
	if len(existing)+len(deleted) == 0 || len(all) == 0 && hasUnknownPort {
		return nil, true
	}
	var usedEntries []modelEntry
	for _, o := range all {
		if isUsed(o, all) {
			usedEntries = append(usedEntries, o)
		}
	}
	return describeEntries(q, usedEntries), false
}

func describeEntries(q query, usedEntries []modelEntry) (lines []string) {
	anyReady := slices.ContainsFunc(usedEntries, modelEntry.ready)
	pods := make(map[string][]modelEntry)
	usedPriorities := make(map[int]bool)
	for _, o := range usedEntries {
		pods[o.identity()] = append(pods[o.identity()], o)
	}
	best := func(pod []modelEntry) modelEntry {
		for _, o := range pod {
			if !slices.ContainsFunc(pod, func(other modelEntry) bool { return isBetter(other, o) }) {
				return o
			}
		}
		panic("unreachable")
	}
	for _, pod := range pods {
		if !best(pod).isGone() {
			usedPriorities[best(pod).priority] = true
		}
	}
	ranks := slices.Sorted(maps.Keys(usedPriorities))
	for _, pod := range pods {
		o := best(pod)
		health := discovery.Unhealthy
		switch {
		case o.isGone():
			continue
		case o.ready():
			health = discovery.Healthy
		case o.isLastResort() && !anyReady && !q.neverTerminating:
			health = discovery.Healthy
		case o.isLastResort():
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
		lines = append(lines, fmt.Sprint(slices.Index(ranks, o.priority), o.Zone, append(v4, v6...), health, o.weight, o.Hints["forZones"], o.Hints["forNodes"]))
	}
	slices.Sort(lines)
	return lines
}

func describeAnswer(a discovery.Answer) (lines []string) {
	hints := func(of []string) (all []modelHint) {
		for _, n := range of {
			all = append(all, modelHint{n})
		}
		return all
	}
	for i, p := range a.Priorities {
		for _, l := range p.Localities {
			for _, e := range l.Endpoints {
				lines = append(lines, fmt.Sprint(i, l.Zone, e.Addresses, e.Health, e.Weight, hints(e.ForZones), hints(e.ForNodes)))
			}
		}
	}
	slices.Sort(lines)
	return lines
}

func (g modelSlice) parse(t *rapid.T) *slice {
	labels := map[string]string{serviceLabel: g.service}
	if g.priority > 0 {
		labels[priorityLabel] = strconv.Itoa(g.priority)
	}
	if g.weight > 0 {
		labels[weightLabel] = strconv.Itoa(g.weight)
	}
	type listed struct {
		Name        string `json:"name"`
		Protocol    string `json:"protocol,omitempty"`
		AppProtocol string `json:"appProtocol,omitempty"`
		Port        int    `json:"port"`
	}
	var ports []listed
	for _, p := range g.ports {
		ports = append(ports, listed(p))
	}
	text, err := json.Marshal(map[string]any{"metadata": map[string]any{"name": g.name, "labels": labels}, "addressType": g.kind, "endpoints": g.endpoints, "ports": ports})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return sliceOfText(t, string(text))
}

func drawSlices(prefix string) *rapid.Generator[[]modelSlice] {
	condition := rapid.SampledFrom([]*bool{nil, new(true), new(false)})
	return rapid.Custom(func(t *rapid.T) (all []modelSlice) {
		for i := range rapid.IntRange(0, 4).Draw(t, "slices") {
			g := modelSlice{
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
				e := modelEndpoint{
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
					e.Hints = map[string][]modelHint{"forZones": {{"a"}}, "forNodes": {{"n"}, {"m"}}}
				}
				g.endpoints = append(g.endpoints, e)
			}
			all = append(all, g)
		}
		return all
	})
}

// For random slices, the result of answer must agree with the oracle in this file.
func TestAnswerAgreesWithOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		existing, deleted := drawSlices("s").Draw(t, "there"), drawSlices("l").Draw(t, "left")
		if rapid.IntRange(0, 3).Draw(t, "none is deleted") > 0 {
			deleted = nil
		}
		q := query{
			namespace: "shop", services: "web,web-canary",
			port:             rapid.SampledFrom([]string{"", "", "grpc", "80", "b"}).Draw(t, "port"),
			neverTerminating: rapid.Bool().Draw(t, "never"),
			family:           rapid.SampledFrom([]string{"", "", "IPv4", "IPv6"}).Draw(t, "family"),
		}
		of := &snapshot{existing: make(map[string]*slice), deleted: make(map[string]*slice)}
		for _, g := range existing {
			of.existing[g.name] = g.parse(t)
		}
		for _, g := range deleted {
			of.deleted[g.name] = g.parse(t)
		}
		want, wantErr := expected(q, existing, deleted)
		a, err := answer(q, of)
		if (err != nil) != wantErr {
			t.Fatalf("the error is %v, want one: %v", err, wantErr)
		}
		if got := describeAnswer(a); err == nil && (!slices.Equal(got, want) || !a.Empty) {
			t.Fatalf("the answer is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}
