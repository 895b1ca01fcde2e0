package weightedroundrobin

import (
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	core "github.com/understudy-lb/understudy/internal/core/weightedroundrobin"
	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
	"github.com/understudy-lb/understudy/internal/lb/leaf"
	"github.com/understudy-lb/understudy/internal/lb/shell"
	"github.com/understudy-lb/understudy/internal/lb/weighted"
)

type child = core.Child[endpointChild]

type endpointChild struct {
	shell.Instance
	parent   *policy
	endpoint resolver.Endpoint
	record   *shell.Record     // counts calls for debug pages; may be nil
	position weighted.Position // the child's place in the pick sequence when the last picker was replaced
	weight   uint32            // of this endpoint alone; the core adds up duplicates
	series   leaf.Series
	outdated bool
}

func (e *endpointChild) name() string { return hierarchy.Addresses(e.endpoint)[0].Addr }

func (e *endpointChild) ensureRecord() *shell.Record {
	if e.record == nil {
		e.record = shell.NewRecord()
	}
	return e.record
}

func (p *policy) build(c *child) {
	c.Attached.parent = p
	c.Attached.position = weighted.NewPosition(p.config.StartRandom)
	c.Attached.Build(p.Shell, p.endpoint, (*owner)(c))
}

// update passes the endpoint to the child. If the child refuses it, we try again in the next
// update.
func (p *policy) update(c *child) {
	err := c.Attached.Update(c.Attached.name(), nil, resolver.State{
		Endpoints:  []resolver.Endpoint{c.Attached.endpoint},
		Attributes: p.attributes,
	})
	c.Attached.outdated = err != nil
}

type owner child

func (o *owner) Reported(_ *shell.Instance, state balancer.State) {
	c := (*child)(o)
	p := c.Attached.parent
	p.failures[c.Attached.series]--
	c.Attached.series = seriesOf(state)
	p.failures[c.Attached.series]++
	var now time.Time
	if state.ConnectivityState == connectivity.Ready {
		now = time.Now()
	}
	if p.core.Reported(c, states[state.ConnectivityState], now) {
		c.Attached.Connect()
	}
}

func (o *owner) ResolveNow() {
	o.Attached.parent.ClientConn.ResolveNow(resolver.ResolveNowOptions{})
}

var states = [...]core.State{
	connectivity.Idle:             core.Idle,
	connectivity.Connecting:       core.Connecting,
	connectivity.Ready:            core.Ready,
	connectivity.TransientFailure: core.TransientFailure,
	connectivity.Shutdown:         core.TransientFailure,
}
