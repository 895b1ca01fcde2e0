package lbconfig

import "google.golang.org/grpc/serviceconfig"

type Drop struct {
	serviceconfig.LoadBalancingConfig `json:"-"`

	DropCategories []DropCategory `json:"dropCategories,omitempty"`
	ChildPolicy    Policy         `json:"childPolicy"`
}

type DropCategory struct {
	Category           string `json:"category"`
	RequestsPerMillion uint32 `json:"requestsPerMillion" max:"1000000" want:"0 to 1000000"`
}

// Million is the denominator of RequestsPerMillion.
const Million = 1_000_000

type EndpointPolicy struct {
	serviceconfig.LoadBalancingConfig `json:"-"`

	ChildPolicy Policy `json:"childPolicy"`
}

// PickFirst configures understudy_pick_first (gRFC A62).
type PickFirst struct {
	serviceconfig.LoadBalancingConfig `json:"-"`

	// ShuffleAddressList shuffles the endpoints of each update. Endpoints with more weight are more
	// likely to come first (gRFC A113). The order we were given doesn't matter, because each
	// endpoint keeps its random number until the policy is closed.
	ShuffleAddressList bool `json:"shuffleAddressList"`
}
