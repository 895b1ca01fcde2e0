package weightedroundrobin

import (
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/pickfirst"
)

// defaultLeaf returns the builder of the policy under each endpoint. It must be
// one whose policies shut down their subchannels in Close.
func defaultLeaf() balancer.Builder { return balancer.Get(pickfirst.Name) }

// leafState prepares a resolver state for the policies under the endpoints: they
// have to watch the server's health, too, where health checking is configured,
// because this policy would otherwise pick endpoints that are not serving.
func leafState(state resolver.State) resolver.State {
	return pickfirst.EnableHealthListener(state)
}
