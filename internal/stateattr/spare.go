package stateattr

import "google.golang.org/grpc/resolver"

// spareKey is the key of SetSpare's mark in an endpoint's attributes.
type spareKey struct{}

// SetSpare returns the endpoint with the mark that nobody connects to it before its zone has a share of
// the calls.
func SetSpare(e resolver.Endpoint) resolver.Endpoint {
	e.Attributes = e.Attributes.WithValue(spareKey{}, true)
	return e
}

// IsSpare reports whether SetSpare marked the endpoint.
func IsSpare(e resolver.Endpoint) bool { return e.Attributes.Value(spareKey{}) != nil }
