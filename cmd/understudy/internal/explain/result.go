package explain

import (
	"fmt"
	"slices"

	"github.com/understudy-lb/understudy/internal/envoy/cds"
)

// Results is the output with -o json for a file with a list of clusters.
type Results struct {
	Clusters []*Result `json:"clusters"`
}

// Result is the output with -o json for a cluster. docs/explain.md describes its fields.
type Result struct {
	Cluster   string           `json:"cluster"`
	Priority  *uint32          `json:"priority"`
	Endpoints []Endpoint       `json:"endpoints"`
	Tiers     []PriorityResult `json:"tiers"`
	Drops     []Drop           `json:"drops"`
	Dropped   float64          `json:"dropped"`
	Down      []string         `json:"down"`
	Options   []string         `json:"options"`
	// Error is the error that calls get. It is set if all calls fail, or if some are dropped.
	Error string   `json:"error,omitempty"`
	Notes []string `json:"notes,omitempty"`
}

// Endpoint is one endpoint, with its share of the calls.
type Endpoint struct {
	// Cluster is the cluster of the endpoint. It is set only for an aggregate.
	Cluster string `json:"cluster,omitempty"`
	Address string `json:"address"`
	// StandsFor describes endpoints that only a channel looks up, such as those of a DNS name. In
	// this case, Address is a placeholder.
	StandsFor           string   `json:"stands_for,omitempty"`
	AdditionalAddresses []string `json:"additional_addresses,omitempty"`
	Locality            string   `json:"locality"`
	LocalityWeight      uint32   `json:"locality_weight"`
	Priority            uint32   `json:"priority"`
	Weight              uint32   `json:"weight"`
	Share               float64  `json:"share"`
	Down                bool     `json:"down,omitempty"`
	DownAddresses       []string `json:"down_addresses,omitempty"`
	// Health is the health status in the file. It is set only if it prevents calls to the endpoint.
	Health string `json:"health,omitempty"`

	mechanism int
}

// Drop is a category of calls that are dropped.
type Drop struct {
	Category           string `json:"category"`
	RequestsPerMillion uint32 `json:"requests_per_million"`
	Cluster            string `json:"cluster,omitempty"`
}

// newResult returns a result without shares. Empty lists are not nil, because JSON shows nil as
// null.
func newResult(cluster string, mechanisms []cds.Mechanism, notes []string, p plan) *Result {
	r := &Result{Cluster: cluster, Endpoints: []Endpoint{}, Tiers: []PriorityResult{}, Drops: []Drop{}, Down: []string{}, Options: []string{}, Notes: notes}
	for i, mechanism := range mechanisms {
		r.add(i, mechanism, p.firstPriority[i], len(mechanisms) > 1)
	}
	r.Notes = append(r.Notes, p.notes...)
	for _, mechanism := range mechanisms {
		if mechanism.Err != nil {
			r.Notes = append(r.Notes, mechanism.Err.Error())
		}
		if mechanism.Err == nil && mechanism.Cluster.OutlierDetection != nil {
			r.Notes = append(r.Notes, fmt.Sprintf("the outlier_detection of cluster %s is not simulated", mechanism.Name))
		}
	}
	return r
}

func (e *Endpoint) addresses() []string {
	return append([]string{e.Address}, e.AdditionalAddresses...)
}

// markDown marks addresses of e as down. name is an address of e, or e's locality, cluster or
// priority, which means all addresses. markDown reports whether an address matches. The name of a
// locality may lack its trailing slashes.
func (e *Endpoint) markDown(name string) bool {
	whole := name == fmt.Sprintf("priority:%d", e.Priority) || e.Cluster != "" && name == "cluster:"+e.Cluster || isLocality(name, e.Locality)
	found := false
	for _, address := range e.addresses() {
		if !whole && name != address {
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
