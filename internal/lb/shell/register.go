package shell

import "google.golang.org/grpc/balancer"

var builders = make(map[string]func(name string) balancer.Builder)

// Register registers a policy under its own name. Call it from an init function.
func Register(policy string, newBuilder func(name string) balancer.Builder) {
	builders[policy] = newBuilder
	balancer.Register(newBuilder(policy))
}

// NewBuilder returns a builder that gives a registered policy another name. It is safe for
// concurrent use.
func NewBuilder(policy, name string) balancer.Builder { return builders[policy](name) }
