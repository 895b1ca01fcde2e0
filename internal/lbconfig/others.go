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

// DropCategory is one reason to drop calls.
type DropCategory struct {
	Category           string `json:"category"`
	RequestsPerMillion uint32 `json:"requestsPerMillion"`
}

// Million is the unit of RequestsPerMillion.
const Million = 1_000_000

func (d *Drop) check(path string) error { return d.ChildPolicy.required(join(path, "childPolicy")) }

func (c *DropCategory) check(path string) error {
	if c.RequestsPerMillion > Million {
		return at(join(path, "requestsPerMillion"), fmt.Errorf("%d given, want 0 to %d", c.RequestsPerMillion, Million))
	}
	return nil
}

// PickFirst configures understudy_pick_first (gRFC A62).
type PickFirst struct {
	serviceconfig.LoadBalancingConfig `json:"-"`

	// ShuffleAddressList makes each list of endpoints be tried in a random order.
	// Endpoints with more weight tend to the front (gRFC A113). What is drawn for an
	// endpoint stays with it as long as the policy lives: a list that only repeats,
	// in whatever order, changes nothing.
	ShuffleAddressList bool `json:"shuffleAddressList"`
}
