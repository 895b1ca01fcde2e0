package drop

import (
	"math/rand/v2"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	estats "google.golang.org/grpc/experimental/stats"
	"google.golang.org/grpc/status"

	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
	"github.com/understudy-lb/understudy/internal/lb/tally"
)

var dropped = estats.RegisterInt64Count(estats.MetricDescriptor{
	Name:           "understudy.drop.dropped",
	Description:    "Number of calls that were dropped, by the category of the configuration that dropped them.",
	Unit:           "{call}",
	Labels:         []string{"grpc.target", "understudy.priority", "understudy.drop.category"},
	OptionalLabels: []string{"grpc.lb.backend_service"},
	Default:        true,
})

var seriesLimit tally.Bound

func labelsOf(target string, labels stateattr.Labels, categories []lbconfig.DropCategory) []tally.Labels {
	var list []tally.Labels
	for _, c := range categories {
		list = append(list, seriesLimit.Limit(target, tally.Labels{labels.Priority, c.Category, labels.Service}))
	}
	return list
}

type picker struct {
	child      balancer.Picker
	categories []lbconfig.DropCategory
	recorder   estats.MetricsRecorder
	target     string
	labels     []tally.Labels
}

// Pick drops the call or passes it to the child's picker. Dropped calls fail with a status error,
// so that even calls that wait for ready end (gRFC A27, "EDS").
func (p *picker) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	for i, c := range p.categories {
		if rand.Uint32N(lbconfig.Million) < c.RequestsPerMillion {
			labels := &p.labels[i]
			dropped.Record(p.recorder, 1, p.target, labels[0], labels[1], labels[2])
			return balancer.PickResult{}, status.Errorf(codes.Unavailable, "call dropped by configuration, category %q", c.Category)
		}
	}
	return p.child.Pick(info)
}
