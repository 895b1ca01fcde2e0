package shell

import "google.golang.org/grpc/balancer"

// For each registered policy: builders get the name that the policy will have.
var builders = make(map[string]func(name string) balancer.Builder)

// Register registers a policy under its own name. It must be called from an init function.
func Register(policy string, newBuilder func(name string) balancer.Builder) {
	builders[policy] = newBuilder
	balancer.Register(newBuilder(policy))
}

// NewBuilder returns a builder of a registered policy under another name. It is safe for concurrent
// use.
func NewBuilder(policy, name string) balancer.Builder { return builders[policy](name) }
