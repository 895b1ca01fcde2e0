// Package interop holds the tests against grpc-go's xDS stack. It is a module of
// its own because that stack is heavy, and registers policies and resolvers of its
// own on import.
package interop
