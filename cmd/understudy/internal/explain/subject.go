package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/understudy-lb/understudy/internal/clusterfile"
	"github.com/understudy-lb/understudy/internal/envoy"
	"github.com/understudy-lb/understudy/internal/topology"
)

type subject struct {
	name   string
	parts  []clusterfile.Mechanism
	notes  []string
	plan   plan
	result *Result
}

func subjectsOf(doc *clusterfile.Document, opts Options) ([]*subject, error) {
	if doc.Clusters == nil {
		name := doc.Endpoints.GetClusterName()
		if opts.Cluster != "" && opts.Cluster != name {
			return nil, fmt.Errorf("--cluster %.100q: %s holds the endpoints of cluster %q", opts.Cluster, opts.File, name)
		}
		return []*subject{{name: name, parts: []clusterfile.Mechanism{{Cluster: name, Endpoints: doc.Endpoints}}}}, nil
	}
	var subjects []*subject
	for _, c := range doc.Clusters {
		if opts.Cluster == "" || opts.Cluster == c.GetName() {
			subjects = append(subjects, &subject{name: c.GetName()})
		}
	}
	if len(subjects) == 0 {
		subjects = []*subject{{name: opts.Cluster}} // no such cluster: Mechanisms returns the error
	}
	for _, s := range subjects {
		var err error
		if s.parts, s.notes, err = doc.Mechanisms(s.name); err != nil {
			return nil, fmt.Errorf("--cluster: %w", err)
		}
	}
	return subjects, nil
}

// takeDown makes a plan and a result for each subject, and marks the endpoints in opts.Down as
// down. A name that matches nothing is an error.
func takeDown(subjects []*subject, settings topology.Settings, opts Options) (err error) {
	for _, s := range subjects {
		if s.plan, err = planOf(s.parts, settings); err != nil {
			return err
		}
		s.result = newResult(s.name, s.parts, s.notes, s.plan)
	}
	for _, name := range opts.Down {
		found := false
		for _, s := range subjects {
			found = s.takeDown(name) || found
		}
		if !found {
			where := "the file"
			if isTarget(opts.File) {
				where = "the target"
			}
			if opts.Cluster != "" {
				where = fmt.Sprintf("cluster %.100q", opts.Cluster)
			}
			return fmt.Errorf("--down %s: %s has no such %s", name, where, namesIn(subjects))
		}
	}
	return nil
}

func (s *subject) takeDown(name string) bool {
	found := s.has(name)
	for i := range s.result.Endpoints {
		found = s.result.Endpoints[i].takeDown(name) || found
	}
	if found {
		s.result.Down = append(s.result.Down, name)
	}
	return found
}

// has reports whether name is a priority, a locality, or a cluster of an aggregate. It may have no
// endpoints.
func (s *subject) has(name string) bool {
	for priority := range s.plan.clusters {
		if name == fmt.Sprintf("priority:%d", priority) {
			return true
		}
	}
	return slices.ContainsFunc(s.parts, func(p clusterfile.Mechanism) bool {
		if s.isAggregate() && name == "cluster:"+p.Cluster {
			return true
		}
		for _, l := range p.Endpoints.GetEndpoints() {
			if isLocality(name, envoy.LocalityName(l.GetLocality())) {
				return true
			}
		}
		return false
	})
}

func isLocality(name, locality string) bool {
	return name != "" && strings.TrimRight(name, "/") == strings.TrimRight(locality, "/")
}

// isAggregate reports whether the subject has several discovery mechanisms. Each is then named
// after a cluster.
func (s *subject) isAggregate() bool { return len(s.parts) > 1 }

// namesIn lists the kinds of names that --down accepts, for an error message.
func namesIn(subjects []*subject) string {
	kinds, cluster := "address, locality or priority", ""
	if i := slices.IndexFunc(subjects, (*subject).isAggregate); i >= 0 {
		kinds, cluster = "address, locality, priority or cluster in an aggregate", subjects[i].parts[0].Cluster
	}
	i := slices.IndexFunc(subjects, func(s *subject) bool { return len(s.result.Endpoints) > 0 })
	if i < 0 {
		return kinds + ": it has no endpoints"
	}
	e := subjects[i].result.Endpoints[0]
	if cluster == "" {
		return fmt.Sprintf("%s; it has, for example, %s, %s and priority:%d", kinds, e.Address, e.Locality, e.Priority)
	}
	return fmt.Sprintf("%s; it has, for example, %s, %s, priority:%d and cluster:%s", kinds, e.Address, e.Locality, e.Priority, cluster)
}
