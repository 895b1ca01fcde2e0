package explain

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/channel/topology"
	"github.com/understudy-lb/understudy/internal/config/options"
)

// Result is the output with -o json for a cluster. See docs/explain.md for the fields.
type Result struct {
	Cluster   string           `json:"cluster"`
	Priority  *uint32          `json:"priority"`
	Endpoints []Endpoint       `json:"endpoints"`
	Tiers     []PriorityResult `json:"tiers"`
	Drops     []Drop           `json:"drops"`
	Dropped   float64          `json:"dropped"`
	Down      []string         `json:"down"`
	Options   []string         `json:"options"`
	// Error is what calls fail with: all of them if no endpoint can take calls, and otherwise only
	// those that are dropped.
	Error    string   `json:"error,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	Notes    []string `json:"notes,omitempty"`

	Tree    topology.Update `json:"-"` // same tree as in a channel
	Entries []string        `json:"-"` // which entry of the target each priority of the tree comes from
	numbers uint32          // how many priorities the source has
	owners  map[string]int  // index of each endpoint that gets calls, by cluster and address
	places  []string        // what --down accepts besides addresses, even if there are no endpoints
}

type Endpoint struct {
	// Cluster is only set for an aggregate.
	Cluster string `json:"cluster,omitempty"`
	Address string `json:"address"`
	// StandsFor describes endpoints that only a channel would look up, such as those behind a DNS
	// name. In that case, Address is just a placeholder.
	StandsFor           string   `json:"stands_for,omitempty"`
	AdditionalAddresses []string `json:"additional_addresses,omitempty"`
	Locality            string   `json:"locality"`
	LocalityWeight      uint32   `json:"locality_weight"`
	Priority            uint32   `json:"priority"`
	Weight              uint32   `json:"weight"`
	Share               float64  `json:"share"`
	Down                bool     `json:"down,omitempty"`
	DownAddresses       []string `json:"down_addresses,omitempty"`
	// Health is the health status in the file, but only if it keeps the endpoint from getting
	// calls.
	Health string `json:"health,omitempty"`
}

// PriorityResult says where calls go if all higher priorities are down and this one fails too.
type PriorityResult struct {
	Priority  uint32 `json:"priority"`
	Cluster   string `json:"cluster,omitempty"`
	Endpoints int    `json:"endpoints"`
	// Standby means that the priority is connected while priority 0 is in use.
	Standby bool `json:"standby,omitempty"`
	// Next is the priority that gets the calls if all endpoints of this one are down, or nil if
	// calls fail. With overflow, it also gets calls that this priority can't handle.
	Next *uint32 `json:"next"`
}

type Drop struct {
	Category           string `json:"category"`
	RequestsPerMillion uint32 `json:"requests_per_million"`
	Cluster            string `json:"cluster,omitempty"`
}

// Note that JSON would show nil lists as null, so we use empty ones.
func newResult(s subject, settings options.Settings) (*Result, error) {
	r := &Result{
		Cluster: s.name, Endpoints: []Endpoint{}, Tiers: []PriorityResult{}, Drops: []Drop{}, Down: []string{}, Options: []string{}, Notes: s.notes,
		owners: make(map[string]int),
	}
	note := func(format string, args ...any) { r.Notes = append(r.Notes, fmt.Sprintf(format, args...)) }
	var trees []topology.Tree
	near := topology.Settings(settings).Near()
	for i, m := range s.mechanisms {
		name, cluster := "", ""
		if len(s.mechanisms) > 1 {
			name, cluster = fmt.Sprint("mechanism", i), m.name
		}
		tree := topology.Plain(name+"/", "", m.answer.Resolved)
		if m.answer.Resolved == nil {
			tree = (&topology.Translator{Name: name, Near: near}).Tree(m.answer)
			if missing := near.MissingFields(m.answer.Answer); missing != "" {
				note("prefer=%s has no effect: the source gives no %s for any endpoint", near.Prefer, missing)
			}
		}
		for j := range tree.Priorities {
			p := &tree.Priorities[j]
			p.Cluster, p.Name, p.Why = cluster, cmp.Or(cluster, p.Name), cmp.Or(m.failure, p.Why)
			r.Entries = append(r.Entries, m.entry)
		}
		trees = append(trees, tree)
		r.add(m, cluster)
	}
	policies, err := topology.NewPolicies(topology.Settings(settings))
	if err != nil {
		return nil, err
	}
	r.Tree = policies.Combine(trees...)
	if !near.Place.Serves(near.Prefer) {
		note("prefer=%s has no effect: the location of the client is unknown; set it with --option zone=NAME, for example", near.Prefer)
	}
	if r.Tree.IsSubset() && settings.SubsetSeed == 0 {
		note("subset=%d: each channel chooses its endpoints at random, so other channels may use different ones; subsetSeed fixes the choice", settings.Subset)
	}
	if policy := settings.EndpointPolicy; policy.IgnoresWeights() && !policy.IsPickFirst() {
		name, _ := policy.Split()
		note("the shares of endpoints are by weight: %s decides otherwise", name)
	}
	return r, nil
}

func (r *Result) add(m mechanism, cluster string) {
	for _, d := range m.answer.Drops {
		r.Drops = append(r.Drops, Drop{d.Category, d.PerMillion, cluster})
	}
	for _, p := range m.answer.Normalized() {
		for _, l := range p.Localities {
			r.places = append(r.places, placesOf(cluster, r.numbers, topology.NameOf(&l))...)
			for _, given := range l.Endpoints {
				addresses := slices.Concat(given.Addresses, []string{"no address"})[:max(1, len(given.Addresses))]
				e := Endpoint{
					Cluster: cluster, Address: addresses[0], AdditionalAddresses: addresses[1:],
					Locality: topology.NameOf(&l), LocalityWeight: l.Weight, Priority: r.numbers, Weight: max(1, given.Weight),
				}
				if given.Health > discovery.Healthy {
					e.Health = strings.ToUpper(given.Health.String())
				} else {
					r.owners[ownerKey(cluster, e.Address)] = len(r.Endpoints)
				}
				if _, err := netip.ParseAddrPort(e.Address); err != nil && !strings.HasPrefix(e.Address, "unix:") {
					e.StandsFor = m.standsFor
				}
				r.Endpoints = append(r.Endpoints, e)
			}
		}
		r.numbers++
	}
}

// gRPC's resolvers omit "unix:", so we do too.
func ownerKey(cluster, address string) string {
	return cluster + " " + strings.TrimPrefix(address, "unix:")
}

func (e *Endpoint) addresses() []string {
	return append([]string{e.Address}, e.AdditionalAddresses...)
}

// What --down accepts for an endpoint besides its addresses.
func placesOf(cluster string, priority uint32, locality string) []string {
	return slices.DeleteFunc([]string{locality, fmt.Sprintf("priority:%d", priority), "cluster:" + cluster}, func(s string) bool { return s == "cluster:" })
}

// Users may omit the trailing slashes in the name of a locality.
func (r *Result) takeDown(name string) (found bool) {
	is := func(place string) bool {
		return name != "" && strings.TrimRight(place, "/") == strings.TrimRight(name, "/")
	}
	found = slices.ContainsFunc(r.places, is)
	for i := range r.Endpoints {
		e := &r.Endpoints[i]
		whole := slices.ContainsFunc(placesOf(e.Cluster, e.Priority, e.Locality), is)
		for _, address := range e.addresses() {
			if whole || address == name {
				found = true
				e.DownAddresses = append(e.DownAddresses, address)
			}
		}
		slices.Sort(e.DownAddresses)
		e.DownAddresses = slices.Compact(e.DownAddresses)
		e.Down = len(e.DownAddresses) == len(e.addresses())
	}
	if found {
		r.Down = append(r.Down, name)
	}
	return found
}

func example(results []*Result) string {
	for _, r := range results {
		for _, e := range r.Endpoints {
			return "; it has, for example, " + strings.Join(append([]string{e.Address}, placesOf(e.Cluster, e.Priority, e.Locality)...), ", ")
		}
	}
	return ": it has no endpoints"
}
