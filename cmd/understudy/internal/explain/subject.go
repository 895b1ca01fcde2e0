package explain

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/understudy-lb/understudy/internal/channel/topology"
	"github.com/understudy-lb/understudy/internal/envoy/cds"
	"github.com/understudy-lb/understudy/internal/envoy/clusterfile"
	"github.com/understudy-lb/understudy/internal/envoy/messages"
)

type explanation struct {
	name       string
	mechanisms []cds.Mechanism
	notes      []string
	plan       plan
	result     *Result
}

func newExplanations(doc *clusterfile.Document, opts Options) ([]*explanation, error) {
	if name := doc.Endpoints.GetClusterName(); doc.Clusters == nil && opts.Cluster != "" && opts.Cluster != name {
		return nil, fmt.Errorf("--cluster %.100q: %s holds the endpoints of cluster %q", opts.Cluster, opts.File, name)
	}
	names := doc.Names()
	if opts.Cluster != "" {
		names = []string{opts.Cluster}
	}
	var explanations []*explanation
	for _, name := range names {
		if err := doc.Check(name); err != nil {
			return nil, fmt.Errorf("--cluster: %w", err)
		}
		g, notes := doc.Resolve(name)
		s := &explanation{name: name, mechanisms: g.List}
		if located, ok := errors.AsType[*messages.Invalid](notes); ok {
			s.notes = messages.Texts(located.Problems)
		}
		explanations = append(explanations, s)
	}
	return explanations, nil
}

// applyDown creates the plan and the result of each explanation, and marks the endpoints in
// opts.Down as down. It returns an error if a name matches nothing.
func applyDown(explanations []*explanation, settings topology.Settings, opts Options) (err error) {
	for _, s := range explanations {
		if s.plan, err = newPlan(s.mechanisms, settings); err != nil {
			return err
		}
		s.result = newResult(s.name, s.mechanisms, s.notes, s.plan)
	}
	for _, name := range opts.Down {
		found := false
		for _, s := range explanations {
			found = s.markDown(name) || found
		}
		if !found {
			container := "the file"
			if isTarget(opts.File) {
				container = "the target"
			}
			if opts.Cluster != "" {
				container = fmt.Sprintf("cluster %.100q", opts.Cluster)
			}
			return fmt.Errorf("--down %s: %s has no such %s", name, container, describeNames(explanations))
		}
	}
	return nil
}

func (s *explanation) markDown(name string) bool {
	found := s.has(name)
	for i := range s.result.Endpoints {
		found = s.result.Endpoints[i].markDown(name) || found
	}
	if found {
		s.result.Down = append(s.result.Down, name)
	}
	return found
}

// has reports whether name is a priority, a locality, or a cluster of an aggregate, even if it has
// no endpoints.
func (s *explanation) has(name string) bool {
	for priority := range s.plan.clusters {
		if name == fmt.Sprintf("priority:%d", priority) {
			return true
		}
	}
	return slices.ContainsFunc(s.mechanisms, func(p cds.Mechanism) bool {
		if s.isAggregate() && name == "cluster:"+p.Name {
			return true
		}
		for _, l := range endpointsIn(p).GetEndpoints() {
			if isLocality(name, messages.LocalityName(l.GetLocality())) {
				return true
			}
		}
		return false
	})
}

func isLocality(name, locality string) bool {
	return name != "" && strings.TrimRight(name, "/") == strings.TrimRight(locality, "/")
}

// isAggregate reports whether s has several discovery mechanisms, each of which is named after a
// cluster.
func (s *explanation) isAggregate() bool { return len(s.mechanisms) > 1 }

// describeNames describes the names that --down accepts, for an error message.
func describeNames(explanations []*explanation) string {
	kinds, cluster := "address, locality or priority", ""
	if i := slices.IndexFunc(explanations, (*explanation).isAggregate); i >= 0 {
		kinds, cluster = "address, locality, priority or cluster in an aggregate", explanations[i].mechanisms[0].Name
	}
	j := slices.IndexFunc(explanations, func(s *explanation) bool { return len(s.result.Endpoints) > 0 })
	if j < 0 {
		return kinds + ": it has no endpoints"
	}
	e := explanations[j].result.Endpoints[0]
	if cluster == "" {
		return fmt.Sprintf("%s; it has, for example, %s, %s and priority:%d", kinds, e.Address, e.Locality, e.Priority)
	}
	return fmt.Sprintf("%s; it has, for example, %s, %s, priority:%d and cluster:%s", kinds, e.Address, e.Locality, e.Priority, cluster)
}
