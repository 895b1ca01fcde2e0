package topology

import endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

// EndpointAddresses returns all addresses of an endpoint of a valid cluster as gRPC
// dials them, the main one first, such as "192.0.2.1:443".
func EndpointAddresses(endpoint *endpointv3.LbEndpoint) []string {
	var dials []string
	for _, address := range addressesOf(endpoint) {
		dial, _ := dialable(address)
		dials = append(dials, dial)
	}
	return dials
}

// EndpointWeight returns the weight of an endpoint, 1 where none is given (gRFC A34,
// "Notes").
func EndpointWeight(endpoint *endpointv3.LbEndpoint) uint32 { return weightOf(endpoint) }
