// Package interop holds tests against grpc-go's xDS stack. It is a separate module because that
// stack is large and registers its own policies and resolvers on import.
package interop
