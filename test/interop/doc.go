// Package interop tests this project against grpc-go's xDS stack. It is in its own module, because
// the xDS stack is large, and importing it registers policies and resolvers.
package interop
