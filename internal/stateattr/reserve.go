package stateattr

import "google.golang.org/grpc/resolver"

// reserveKey is the key of SetReserve's mark in an endpoint's attributes.
type reserveKey struct{}

// SetReserve returns the endpoint with the mark that nobody connects to it before its zone has a share of
// the calls.
func SetReserve(e resolver.Endpoint) resolver.Endpoint {
	e.Attributes = e.Attributes.WithValue(reserveKey{}, true)
	return e
}

// IsReserve reports whether SetReserve marked the endpoint.
func IsReserve(e resolver.Endpoint) bool { return e.Attributes.Value(reserveKey{}) != nil }
