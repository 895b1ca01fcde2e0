package drop

import (
	"math/rand/v2"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	estats "google.golang.org/grpc/experimental/stats"
	"google.golang.org/grpc/status"

	"github.com/understudy-lb/understudy/hierarchy"
	"github.com/understudy-lb/understudy/internal/lbconfig"
	"github.com/understudy-lb/understudy/internal/shell"
)

// dropped counts the calls that were dropped.
var dropped = estats.RegisterInt64Count(estats.MetricDescriptor{
	Name:           "understudy.drop.dropped",
	Description:    "Number of calls that were dropped, by the category of the configuration that dropped them.",
	Unit:           "{call}",
	Labels:         []string{"grpc.target", "understudy.priority", "understudy.drop.category"},
	OptionalLabels: []string{"grpc.lb.backend_service"},
	Default:        true,
})

// picker drops calls, and lets the child's picker pick for the others.
type picker struct {
	child      balancer.Picker
	categories []lbconfig.DropCategory
	recorder   estats.MetricsRecorder
	target     string
	place      hierarchy.Place
}

// Tier returns what the child says of its endpoints; see shell.TierOf.
func (p *picker) Tier() shell.Tier { return shell.TierOf(p.child) }

// Pick picks, or drops the call. A dropped call fails with a status error, which ends
// it even if it waits for ready (gRFC A27, "EDS").
func (p *picker) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	for _, c := range p.categories {
		if rand.Uint32N(lbconfig.Million) < c.RequestsPerMillion {
			dropped.Record(p.recorder, 1, p.target, p.place.Priority, c.Category, p.place.Service)
			return balancer.PickResult{}, status.Errorf(codes.Unavailable, "call dropped by configuration, category %q", c.Category)
		}
	}
	return p.child.Pick(info)
}
