package messages

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/understudy-lb/understudy/internal/config/lbconfig"
)

// addNotes adds notes about what gRPC ignores (gRFC A27), and about violations of Envoy's rules, but
// not within ignored fields.
func addNotes(cluster *endpointv3.ClusterLoadAssignment, notes *Invalid) {
	var ignored []string
	for i, locality := range cluster.GetEndpoints() {
		path := fmt.Sprintf("endpoints[%d]", i)
		if hasTraffic(locality) {
			noteUnused(locality, path, notes)
			continue
		}
		ignored = append(ignored, path+".")
		weight := "no weight"
		if locality.GetLoadBalancingWeight() != nil {
			weight = "weight 0"
		}
		notes.Add(path, "locality %q of priority %d has %s and gets no traffic", LocalityName(locality.GetLocality()), locality.GetPriority(), weight)
	}
	ignored = append(ignored, notes.AddUnused("policy", cluster.GetPolicy(), "drop_overloads")...)
	ignored = append(ignored, notes.AddUnused("", cluster, "cluster_name", "endpoints", "policy")...)
	for i, drop := range cluster.GetPolicy().GetDropOverloads() {
		if rate := dropRate(drop); rate > lbconfig.Million {
			notes.Add(fmt.Sprintf("policy.drop_overloads[%d].drop_percentage", i),
				"category %q drops %v %%, which counts as 100 %%", drop.GetCategory(), float64(rate)/(lbconfig.Million/100))
		}
	}
	var violations Invalid
	if err := cluster.ValidateAll(); err != nil {
		violations.addViolations("", err)
	}
	for _, v := range violations.Problems {
		if !slices.ContainsFunc(ignored, func(path string) bool { return strings.HasPrefix(v.Path, path) }) {
			notes.Add(v.Path, "%s", v.Text)
		}
	}
}

// AddUnused adds a note for each field that is set, but not among those that are used. It returns the
// paths of these fields.
func (e *Invalid) AddUnused(path string, m proto.Message, used ...protoreflect.Name) (paths []string) {
	fields := m.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		if name := fields.Get(i).Name(); m.ProtoReflect().Has(fields.Get(i)) && !slices.Contains(used, name) {
			paths = append(paths, strings.Trim(path+"."+string(name), "."))
			e.Add(paths[len(paths)-1], "%s has no effect", name)
		}
	}
	return paths
}

// violation is the interface of errors from the generated validation of Envoy's protos.
type violation interface {
	error
	Field() string // Go name of the field, with a list index or map key, such as "Endpoints[0]"
	Reason() string
	Cause() error
}

var wordEnd = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// addViolations adds the violations in err as notes. It skips violations of the rules for
// load_balancing_weight, because gRPC defines the meaning of a zero weight.
func (e *Invalid) addViolations(path string, err error) {
	if list, ok := err.(interface{ AllErrors() []error }); ok {
		for _, err := range list.AllErrors() {
			e.addViolations(path, err)
		}
		return
	}
	v, ok := err.(violation)
	if !ok {
		e.Add(path, "%v", err)
		return
	}
	name, index, _ := strings.Cut(v.Field(), "[")
	name = strings.ToLower(wordEnd.ReplaceAllString(name, "${1}_${2}"))
	if path = strings.Trim(path+"."+name, "."); index != "" {
		path += "[" + index
	}
	switch {
	case name == "load_balancing_weight":
	case v.Cause() != nil:
		e.addViolations(path, v.Cause())
	default:
		e.Add(path, "%s %s, by Envoy's rules; gRPC does not require it", name, strings.TrimPrefix(v.Reason(), "value "))
	}
}

func whyEmpty(cluster *endpointv3.ClusterLoadAssignment) string {
	if n := len(cluster.GetEndpoints()); n > 0 {
		return fmt.Sprintf("cluster %q has no locality with a weight (%d in total)", cluster.GetClusterName(), n)
	}
	return fmt.Sprintf("cluster %q has no localities", cluster.GetClusterName())
}

func noteUnused(locality *endpointv3.LocalityLbEndpoints, path string, notes *Invalid) {
	if locality.GetLbConfig() != nil {
		notes.Add(path, "load_balancer_endpoints and leds_cluster_locality_config have no effect, want lb_endpoints")
	}
	for j, lb := range locality.GetLbEndpoints() {
		if !Healthy(lb) {
			continue
		}
		socket := lb.GetEndpoint().GetAddress().GetSocketAddress()
		if p := socket.GetProtocol(); p != corev3.SocketAddress_TCP {
			notes.Add(fmt.Sprintf("%s.lb_endpoints[%d].endpoint.address.socket_address.protocol", path, j), "protocol %v has no effect, TCP is used", p)
		}
	}
}
