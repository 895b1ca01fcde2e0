package hierarchy_test

import (
	"fmt"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/policy/hierarchy"
)

func Example() {
	endpoint := resolver.Endpoint{Addresses: []resolver.Address{{Addr: "192.0.2.1:443"}}}
	endpoint = hierarchy.Set(endpoint, "us-east", "zone-a")
	for child, endpoints := range hierarchy.Group([]resolver.Endpoint{endpoint}) {
		fmt.Println(child, hierarchy.Path(endpoints[0]))
	}
	// Output: us-east [zone-a]
}
