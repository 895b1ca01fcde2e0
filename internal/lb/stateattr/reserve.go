package stateattr

import "google.golang.org/grpc/resolver"

type reserveKey struct{}

// SetReserve returns endpoint e with an attribute that marks it as a reserve. Policies connect to a
// reserve only when its zone has a share of the calls.
func SetReserve(e resolver.Endpoint) resolver.Endpoint {
	e.Attributes = e.Attributes.WithValue(reserveKey{}, true)
	return e
}

// IsReserve reports whether SetReserve has marked the endpoint.
func IsReserve(e resolver.Endpoint) bool { return e.Attributes.Value(reserveKey{}) != nil }
