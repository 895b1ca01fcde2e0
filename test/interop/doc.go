// Package interop tests this project against grpc-go's xDS stack. It has its own module because the
// xDS stack is large and registers policies and resolvers when it's imported.
package interop
