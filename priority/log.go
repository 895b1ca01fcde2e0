package priority

import (
	"fmt"
	"slices"

	"google.golang.org/grpc/connectivity"
	estats "google.golang.org/grpc/experimental/stats"

	"github.com/understudy-lb/understudy/hierarchy"
	core "github.com/understudy-lb/understudy/internal/core/priority"
)

var failoversMetric = estats.RegisterInt64Count(estats.MetricDescriptor{
	Name:        "understudy.priority.failovers",
	Description: "Changes of the child in use, to a lower priority or back up.",
	Unit:        "{failover}",
	Labels:      []string{"grpc.target", "from", "to"},
	Default:     true,
})

// recordFailover counts a change of the child in use, and logs it on one line. The
// first choice is none, nor is a change from or to a configuration without
// priorities.
func (p *policy) recordFailover(from, to string, state connectivity.State) {
	if from == "" || to == "" {
		return
	}
	target := p.opts.Target.String()
	failoversMetric.Record(p.cc.MetricsRecorder(), 1, target, from, to)
	was, now := slices.Index(p.config.Priorities, from), slices.Index(p.config.Priorities, to)
	switch {
	case was < 0:
		logger.Infof("priority: %s: from %q to %q, which is %v: %s", target, from, to, state, p.why(from))
	case was < now:
		logger.Warningf("priority: %s: down from %q to %q, which is %v: %s", target, from, to, state, p.why(from))
	default:
		logger.Infof("priority: %s: back up from %q to %q, which is %v: %s", target, from, to, state, p.why(from))
	}
}

// why says what has become of the child that was in use.
func (p *policy) why(name string) string {
	if _, ok := p.config.Children[name]; !ok {
		return fmt.Sprintf("%q is not configured any more", name)
	}
	state, ok := p.core.State(name)
	c := p.children[name]
	switch {
	case !ok:
		return fmt.Sprintf("%q is not wanted any more", name)
	case state != core.TransientFailure:
		return fmt.Sprintf("%q is %v", name, state)
	case c.rejection == nil && c.state.ConnectivityState == connectivity.Connecting:
		return fmt.Sprintf("%q did not connect in time", name)
	}
	return fmt.Sprintf("%q failed: %v", name, c.lastError)
}

// logStrays says so once when endpoints begin to belong to no child.
func (p *policy) logStrays() {
	strays, first := 0, ""
	for _, endpoint := range p.state.Endpoints {
		path := hierarchy.Path(endpoint)
		if len(path) > 0 {
			if _, ok := p.config.Children[path[0]]; ok {
				continue
			}
		}
		if strays++; strays == 1 {
			first = fmt.Sprintf("%v with the path %q", hierarchy.Addresses(endpoint), path)
		}
	}
	if strays > 0 && !p.strays {
		logger.Warningf("priority: %s: %d of %d endpoints belong to no child and get no calls, the first is %s", p.opts.Target.String(), strays, len(p.state.Endpoints), first)
	}
	p.strays = strays > 0
}
