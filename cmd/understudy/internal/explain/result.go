package explain

import (
	"fmt"
	"slices"

	"github.com/understudy-lb/understudy/internal/clusterfile"
)

// Results are what explain prints with -o json of a file with a list of clusters.
type Results struct {
	Clusters []*Result `json:"clusters"`
}

// Result is what explain prints with -o json of a cluster. Its fields are described in
// docs/explain.md.
type Result struct {
	// Cluster is the cluster's name.
	Cluster string `json:"cluster"`
	// Priority is the highest that gets calls, nil if none does.
	Priority  *uint32    `json:"priority"`
	Endpoints []Endpoint `json:"endpoints"`
	// Tiers say what becomes of each priority.
	Tiers []Tier `json:"tiers"`
	// Drops are those of the file, in the order in which they apply.
	Drops []Drop `json:"drops"`
	// Dropped is the fraction of the calls that drops end.
	Dropped float64 `json:"dropped"`
	// Down are the names of what is down, as they were given.
	Down []string `json:"down"`
	// Options are those of the channel, as they were given.
	Options []string `json:"options"`
	// Error is what calls fail with, if all or, because of drops, some of them do.
	Error string `json:"error,omitempty"`
	// Notes say what in the file has no effect and may surprise.
	Notes []string `json:"notes,omitempty"`
}

// Endpoint is one endpoint of the file.
type Endpoint struct {
	// Cluster is the one that it is of, where the cluster is an aggregate.
	Cluster string `json:"cluster,omitempty"`
	Address string `json:"address"`
	// StandsFor says what the address stands for, where only a channel finds that out.
	StandsFor           string   `json:"stands_for,omitempty"`
	AdditionalAddresses []string `json:"additional_addresses,omitempty"`
	Locality            string   `json:"locality"`
	LocalityWeight      uint32   `json:"locality_weight"`
	Priority            uint32   `json:"priority"`
	Weight              uint32   `json:"weight"`
	// Share is the fraction of the calls that it gets.
	Share float64 `json:"share"`
	// Down is set where all its addresses were named to be down, themselves or with
	// their surroundings.
	Down bool `json:"down,omitempty"`
	// DownAddresses are those of its addresses that are down.
	DownAddresses []string `json:"down_addresses,omitempty"`
	// Health is set where the file says that it should get no calls.
	Health string `json:"health,omitempty"`

	part int // that it is of
}

// Drop is a part of the calls that the file says to drop.
type Drop struct {
	Category           string `json:"category"`
	RequestsPerMillion uint32 `json:"requests_per_million"`
	// Cluster is the one that it is of, where the cluster is an aggregate.
	Cluster string `json:"cluster,omitempty"`
}

// newResult returns what is known of a cluster before any call is made. No list in it is
// nil, so that JSON has [] for an empty one.
func newResult(cluster string, parts []clusterfile.Mechanism, notes []string, p plan) *Result {
	r := &Result{Cluster: cluster, Endpoints: []Endpoint{}, Tiers: []Tier{}, Drops: []Drop{}, Down: []string{}, Options: []string{}, Notes: notes}
	for i, part := range parts {
		r.add(i, part, p.first[i], len(parts) > 1)
	}
	r.Notes = append(r.Notes, p.notes...)
	for _, part := range parts {
		if part.Err != nil {
			r.Notes = append(r.Notes, part.Err.Error())
		}
		if part.OutlierDetection != nil {
			r.Notes = append(r.Notes, fmt.Sprintf("the outlier_detection of cluster %s is not tried out", part.Cluster))
		}
	}
	return r
}

// addresses returns all addresses of e, the main one first.
func (e *Endpoint) addresses() []string {
	return append([]string{e.Address}, e.AdditionalAddresses...)
}

// takeDown marks the addresses of e that name names: one of them, or all where it
// names e's locality or priority. It returns whether it names any. A locality may be
// written with the slashes that nothing follows.
func (e *Endpoint) takeDown(name string) bool {
	all := name == fmt.Sprintf("priority:%d", e.Priority) || e.Cluster != "" && name == "cluster:"+e.Cluster || isLocality(name, e.Locality)
	found := false
	for _, address := range e.addresses() {
		if !all && name != address {
			continue
		}
		found = true
		if !e.isDown(address) {
			e.DownAddresses = append(e.DownAddresses, address)
		}
	}
	e.Down = len(e.DownAddresses) == len(e.addresses())
	return found
}

func (e *Endpoint) isDown(address string) bool { return slices.Contains(e.DownAddresses, address) }
