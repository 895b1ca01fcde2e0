package options

import (
	"encoding/json"
	"fmt"
	"strings"

	"google.golang.org/grpc/balancer"

	"github.com/understudy-lb/understudy/internal/text/printable"
)

// EndpointPolicy is the policy that picks endpoints, as the option endpointPolicy names it: NAME or
// NAME{"field": value}.
type EndpointPolicy string

// The policies of this project that need no registration by the program.
const (
	WeightedRoundRobin EndpointPolicy = "weighted_round_robin"
	PickFirst          EndpointPolicy = "pick_first"
)

// imports maps policies of grpc-go to the packages that register them.
var imports = map[string]string{
	"least_request_experimental": "google.golang.org/grpc/balancer/leastrequest",
	"ring_hash_experimental":     "google.golang.org/grpc/balancer/ringhash",
	"weighted_round_robin":       "google.golang.org/grpc/balancer/weightedroundrobin",
}

// perPriority policies choose among all endpoints of a priority, so they must see them in one list
// (gRFC A42).
var perPriority = map[string]bool{"ring_hash_experimental": true}

// maxEndpointPolicy is in bytes.
const maxEndpointPolicy = 10_000

// Split returns the name of the policy and its configuration, which is nil if there is none.
func (e EndpointPolicy) Split() (name string, config json.RawMessage) {
	name, _, found := strings.Cut(string(e), "{")
	if !found {
		return name, nil
	}
	return name, json.RawMessage(e[len(name):])
}

// IsDefault is true for our weighted_round_robin (gRFC A34). With a configuration, the name means
// grpc-go's policy.
func (e EndpointPolicy) IsDefault() bool { return e == "" || e == WeightedRoundRobin }

// IsPickFirst is true for pick_first, with or without a configuration.
func (e EndpointPolicy) IsPickFirst() bool {
	name, _ := e.Split()
	return name == string(PickFirst)
}

// InOneList is true if the endpoint policy gets all endpoints of a priority in one list. Otherwise,
// each locality has a policy of its own.
func (s Settings) InOneList() bool {
	name, _ := s.EndpointPolicy.Split()
	return s.PerPriority || perPriority[name]
}

// IgnoresWeights is true if the policy is known to ignore the weights of endpoints.
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
