// Package interop has tests against grpc-go's xDS stack. It is a module of its own, because that
// stack is large and registers its policies and resolvers when it is imported.
package interop
