package options

import (
	"encoding/json"
	"fmt"
	"strings"

	"google.golang.org/grpc/balancer"

	"github.com/understudy-lb/understudy/internal/text/printable"
)

// EndpointPolicy is the policy that picks endpoints, in the format of the option endpointPolicy:
// NAME or NAME{"field": value}.
type EndpointPolicy string

// The following are our own policies. Programs don't have to import anything to use them.
const (
	WeightedRoundRobin EndpointPolicy = "weighted_round_robin"
	PickFirst          EndpointPolicy = "pick_first"
)

// Packages to import for grpc-go's policies.
var imports = map[string]string{
	"least_request_experimental": "google.golang.org/grpc/balancer/leastrequest",
	"ring_hash_experimental":     "google.golang.org/grpc/balancer/ringhash",
	"weighted_round_robin":       "google.golang.org/grpc/balancer/weightedroundrobin",
}

// These need to see all endpoints of a priority in one list (gRFC A42).
var perPriority = map[string]bool{"ring_hash_experimental": true}

const maxEndpointPolicy = 10_000 // bytes

// Split returns the policy's name and its configuration, or nil if it doesn't have one.
func (e EndpointPolicy) Split() (name string, config json.RawMessage) {
	name, _, found := strings.Cut(string(e), "{")
	if !found {
		return name, nil
	}
	return name, json.RawMessage(e[len(name):])
}

// IsDefault reports whether e is our own weighted_round_robin (gRFC A34). With a configuration, the
// same name refers to grpc-go's policy.
func (e EndpointPolicy) IsDefault() bool { return e == "" || e == WeightedRoundRobin }

func (e EndpointPolicy) IsPickFirst() bool {
	name, _ := e.Split()
	return name == string(PickFirst)
}

// InOneList reports whether the endpoint policy gets all endpoints of a priority in one list. If
// not, there's one policy per locality.
func (s Settings) InOneList() bool {
	name, _ := s.EndpointPolicy.Split()
	return s.PerPriority || perPriority[name]
}

// IgnoresWeights reports whether we know that the policy ignores endpoint weights.
func (e EndpointPolicy) IgnoresWeights() bool {
	name, _ := e.Split()
	return !e.IsDefault() && (e.IsPickFirst() || imports[name] != "" && !perPriority[name])
}

func (e EndpointPolicy) check() error {
	name, config := e.Split()
	switch {
	case len(e) > maxEndpointPolicy:
		return fmt.Errorf("%d bytes given, want at most %d", len(e), maxEndpointPolicy)
	case e.IsDefault(), e == PickFirst:
		return nil
	case e.IsPickFirst():
		name = "understudy_pick_first"
	}
	builder := balancer.Get(name)
	if path := imports[name]; builder == nil && path != "" {
		return fmt.Errorf("%s given, which is not registered, want import _ %q", printable.Quote(name), path)
	}
	if builder == nil {
		return fmt.Errorf("%s given, which is not registered, want weighted_round_robin, pick_first, or a policy whose package the program imports", printable.Quote(name))
	}
	if config == nil {
		config = json.RawMessage("{}")
	}
	if !json.Valid(config) {
		return fmt.Errorf("%s given, want the configuration of %s as a JSON object", printable.Quote(string(config)), name)
	}
	if parser, ok := builder.(balancer.ConfigParser); ok {
		if _, err := parser.ParseConfig(config); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	var ring struct{ RequestHashHeader string }
	if name == "ring_hash_experimental" && (json.Unmarshal(config, &ring) != nil || ring.RequestHashHeader == "") {
		return fmt.Errorf(`%s given without requestHashHeader, want ring_hash_experimental{"requestHashHeader": "user"}: only xDS knows another key, so each call would fail`, name)
	}
	return nil
}
