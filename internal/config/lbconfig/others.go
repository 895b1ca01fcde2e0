package lbconfig

import (
	"fmt"

	"google.golang.org/grpc/serviceconfig"
)

// Drop configures understudy_drop.
type Drop struct {
	serviceconfig.LoadBalancingConfig `json:"-"`

	DropCategories []DropCategory `json:"dropCategories,omitempty"`
	ChildPolicy    Policy         `json:"childPolicy"`
}

// DropCategory is a reason to drop calls.
type DropCategory struct {
	Category           string `json:"category"`
	RequestsPerMillion uint32 `json:"requestsPerMillion"`
}

// Million is the denominator of RequestsPerMillion.
const Million = 1_000_000

func (d *Drop) check(path string) error { return d.ChildPolicy.required(join(path, "childPolicy")) }

func (c *DropCategory) check(path string) error {
	if c.RequestsPerMillion > Million {
		return withPath(join(path, "requestsPerMillion"), fmt.Errorf("%d given, want 0 to %d", c.RequestsPerMillion, Million))
	}
	return nil
}

// EndpointPolicy configures understudy_endpoint_policy.
type EndpointPolicy struct {
	serviceconfig.LoadBalancingConfig `json:"-"`

	ChildPolicy Policy `json:"childPolicy"`
}

func (e *EndpointPolicy) check(path string) error {
	return e.ChildPolicy.required(join(path, "childPolicy"))
}

// PickFirst configures understudy_pick_first (gRFC A62).
type PickFirst struct {
	serviceconfig.LoadBalancingConfig `json:"-"`

	// ShuffleAddressList shuffles each list of endpoints. Endpoints with more weight are more
	// likely to come first (gRFC A113). An endpoint keeps its random number until the policy is
	// closed, so the order of the given list does not matter.
	ShuffleAddressList bool `json:"shuffleAddressList"`
}
