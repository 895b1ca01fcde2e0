package shell

import "google.golang.org/grpc/balancer"

// builders makes the builders of the policies, by the policies' own names.
var builders = make(map[string]func(name string) balancer.Builder)

// Register registers a policy under its own name. It is for init functions.
func Register(policy string, newBuilder func(name string) balancer.Builder) {
	builders[policy] = newBuilder
	balancer.Register(newBuilder(policy))
}

// NewBuilder returns the builder of a policy that Register was called for, under another
// name. It is safe for concurrent use.
func NewBuilder(policy, name string) balancer.Builder { return builders[policy](name) }
