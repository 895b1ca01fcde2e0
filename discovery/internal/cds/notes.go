package cds

import (
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/understudy-lb/understudy/topology"
)

// quiet lists the fields of a cluster that need no note. Some are read. The others are
// about how Envoy connects, so nobody expects an effect here.
var quiet = []protoreflect.Name{
	"name", "type", "cluster_type", "eds_cluster_config", "load_assignment", "lb_policy", "load_balancing_policy",
	"alt_stat_name", "connect_timeout", "dns_lookup_family", "metadata", "typed_extension_protocol_options",
	"http2_protocol_options", "protocol_selection", "wait_for_warm_on_init", "track_cluster_stats",
	"outlier_detection",
}

// notes returns the fields that somebody may have expected an effect of.
func (r *reader) notes() []topology.Problem {
	var found []topology.Problem
	switch o := r.read.OutlierDetection; {
	case o != nil:
		for _, p := range o.Notes() {
			p.Path = within("outlier_detection", p.Path)
			found = append(found, p)
		}
	case r.from.GetOutlierDetection() != nil:
		found = append(found, topology.Problem{Path: "outlier_detection", Text: "outlier_detection has no effect in an aggregate, want it in the clusters that it names"})
	}
	r.from.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		if name := field.Name(); !slices.Contains(quiet, name) {
			found = append(found, topology.Problem{Path: string(name), Text: string(name) + " has no effect"})
		}
		return true
	})
	slices.SortFunc(found, func(a, b topology.Problem) int {
		if a.Path < b.Path {
			return -1
		}
		return 1
	})
	return found[:min(len(found), topology.MaxProblems)]
}
