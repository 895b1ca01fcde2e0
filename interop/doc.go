// Package interop tests this project against grpc-go's xDS stack. It is in its own module, because
// that stack is large and registers policies and resolvers when it is imported.
package interop
