package weightedroundrobin

import (
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	core "github.com/understudy-lb/understudy/internal/core/weightedroundrobin"
	"github.com/understudy-lb/understudy/internal/hierarchy"
	"github.com/understudy-lb/understudy/internal/shell"
	"github.com/understudy-lb/understudy/internal/weighted"
)

// child is the child of one endpoint.
type child = core.Child[endpointChild]

// endpointChild is the shell's part of a child: the policy of the endpoint, and its place
// in the sequence of picks.
type endpointChild struct {
	shell.Instance
	parent   *policy
	endpoint resolver.Endpoint
	record   *shell.Record  // of its calls; nil until somebody watches
	outdated bool           // the child's policy has not accepted the endpoint
	place    weighted.Position // as of the last picker that had the child, if it is not in the current one
}

func (e *endpointChild) name() string { return hierarchy.Addresses(e.endpoint)[0].Addr }

func (e *endpointChild) theRecord() *shell.Record {
	if e.record == nil {
		e.record = shell.NewRecord()
	}
	return e.record
}

func (p *policy) build(c *child) {
	c.Attached.parent = p
	c.Attached.place = weighted.NewPosition(p.config.StartRandom)
	c.Attached.Build(p.Shell, p.leaf, (*owner)(c))
}

// update gives the child's policy its endpoint and the attributes of the update. A
// refused endpoint is given again with the next update.
func (p *policy) update(c *child) {
	err := c.Attached.Update(c.Attached.name(), nil, resolver.State{
		Endpoints:  []resolver.Endpoint{c.Attached.endpoint},
		Attributes: p.attributes,
	})
	c.Attached.outdated = err != nil
}

// owner is a child as its Instance sees it.
type owner child

// Reported handles a state that the child reported.
func (o *owner) Reported(_ *shell.Instance, state balancer.State) {
	c := (*child)(o)
	var now time.Time // is asked for only where it is used
	if state.ConnectivityState == connectivity.Ready {
		now = time.Now()
		c.Attached.parent.core.Unproven(c, shell.TierOf(state.Picker).UnprovenPart > 0)
	}
	if c.Attached.parent.core.Reported(c, states[state.ConnectivityState], now) {
		c.Attached.Connect()
	}
}

// ResolveNow asks the channel.
func (o *owner) ResolveNow() {
	o.Attached.parent.ClientConn.ResolveNow(resolver.ResolveNowOptions{})
}

// states has the core's names of gRPC's states.
var states = [...]core.State{
	connectivity.Idle:             core.Idle,
	connectivity.Connecting:       core.Connecting,
	connectivity.Ready:            core.Ready,
	connectivity.TransientFailure: core.TransientFailure,
	connectivity.Shutdown:         core.TransientFailure,
}
