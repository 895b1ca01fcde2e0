// Package explain says what the policies make of an endpoints file: which endpoint
// gets which share of the calls, and what becomes of it when something is down.
package explain

import (
	"context"
	"fmt"
	"io"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	_ "github.com/understudy-lb/understudy" // the policies that trees are made of
	"github.com/understudy-lb/understudy/discovery/file"
	"github.com/understudy-lb/understudy/topology"
)

// Options say what to explain.
type Options struct {
	// File is the path of the endpoints file.
	File string
	// Down names what is down: an address, a locality, or "priority:N".
	Down []string
	// JSON prints the result as JSON, and no table.
	JSON bool
	// Out is where the result goes.
	Out io.Writer
}

// Result is what explain prints with -o json.
type Result struct {
	// Priority is the highest that gets calls, nil if none does.
	Priority  *uint32    `json:"priority"`
	Endpoints []Endpoint `json:"endpoints"`
	// Error is what calls fail with, if all or, because of drops, some of them do.
	Error string `json:"error,omitempty"`
	// Notes say what in the file has no effect and may surprise.
	Notes []string `json:"notes,omitempty"`
}

// Endpoint is one endpoint of the file.
type Endpoint struct {
	Address  string `json:"address"`
	Locality string `json:"locality"`
	Priority uint32 `json:"priority"`
	Weight   uint32 `json:"weight"`
	// Share is the fraction of the calls that it gets.
	Share float64 `json:"share"`
	// Down is set where all its addresses were named to be down, themselves or with
	// their surroundings.
	Down bool `json:"down,omitempty"`
	// Health is set where the file says that it should get no calls.
	Health string `json:"health,omitempty"`

	localityWeight uint32
	addresses      []string
	down           map[string]bool // those of addresses that are down
}

// Run explains a file. All its errors are of the input, but for ctx's.
func Run(ctx context.Context, opts Options) error {
	cluster, err := file.Load(opts.File)
	if err != nil {
		return err
	}
	tree, err := new(topology.Translator).Translate(cluster)
	if err != nil {
		return fmt.Errorf("%s: %w", opts.File, err)
	}
	result := &Result{Endpoints: endpoints(cluster)}
	for _, note := range tree.Notes {
		result.Notes = append(result.Notes, note.Text)
	}
	if err := result.takeDown(opts.Down); err != nil {
		return err
	}
	if err := result.measure(ctx, tree); err != nil {
		return err
	}
	if opts.JSON {
		return result.printJSON(opts.Out)
	}
	result.printTable(opts.Out, cluster.GetClusterName())
	return nil
}

// endpoints returns the endpoints of cluster, in its order.
func endpoints(cluster *endpointv3.ClusterLoadAssignment) []Endpoint {
	all := []Endpoint{} // not nil: without any, "endpoints" is [] in JSON
	for _, locality := range cluster.GetEndpoints() {
		for _, lb := range locality.GetLbEndpoints() {
			e := Endpoint{
				Locality:       topology.LocalityName(locality.GetLocality()),
				Priority:       locality.GetPriority(),
				Weight:         topology.EndpointWeight(lb),
				localityWeight: locality.GetLoadBalancingWeight().GetValue(),
				addresses:      topology.EndpointAddresses(lb),
				down:           map[string]bool{},
			}
			e.Address = e.addresses[0]
			switch health := lb.GetHealthStatus(); health {
			case corev3.HealthStatus_UNKNOWN, corev3.HealthStatus_HEALTHY:
			default:
				e.Health = health.String()
			}
			all = append(all, e)
		}
	}
	return all
}

// takeDown marks what names name. A name that names nothing is an error.
func (r *Result) takeDown(names []string) error {
	for _, name := range names {
		found := false
		for i := range r.Endpoints {
			found = r.Endpoints[i].takeDown(name) || found
		}
		if !found {
			return fmt.Errorf("--down %s: the file has no such address, locality or priority%s", name, r.examples())
		}
	}
	return nil
}

// examples returns names that the file does have, for an error.
func (r *Result) examples() string {
	if len(r.Endpoints) == 0 {
		return ": it has no endpoints"
	}
	e := r.Endpoints[0]
	return fmt.Sprintf("; it has, for example, %s, %s and priority:%d", e.Address, e.Locality, e.Priority)
}

// takeDown marks the addresses of e that name names: one of them, or all where it
// names e's locality or priority. It returns whether it names any. A locality may be
// written with the slashes that nothing follows.
func (e *Endpoint) takeDown(name string) bool {
	all := name == fmt.Sprintf("priority:%d", e.Priority) || name != "" && strings.TrimRight(name, "/") == strings.TrimRight(e.Locality, "/")
	found := false
	for _, address := range e.addresses {
		if all || name == address {
			e.down[address] = true
			found = true
		}
	}
	e.Down = len(e.down) == len(e.addresses)
	return found
}

// measure tries calls on the tree's policies, and notes each endpoint's share.
func (r *Result) measure(ctx context.Context, tree topology.Tree) error {
	owner := make(map[string]*Endpoint)
	for i := range r.Endpoints {
		for _, address := range r.Endpoints[i].addresses {
			owner[address] = &r.Endpoints[i]
		}
	}
	counts, callErr, err := countPicks(ctx, tree, func(address string) bool { return owner[address].down[address] })
	if err != nil {
		return err
	}
	if callErr != nil {
		r.Error = callErr.Error()
	}
	for address, n := range counts {
		e := owner[address]
		e.Share += float64(n) / picks
		if r.Priority == nil || e.Priority < *r.Priority {
			r.Priority = &e.Priority
		}
	}
	return nil
}
