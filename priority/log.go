package priority

import (
	"fmt"
	"slices"

	"google.golang.org/grpc/connectivity"
	estats "google.golang.org/grpc/experimental/stats"

	core "github.com/understudy-lb/understudy/internal/core/priority"
	"github.com/understudy-lb/understudy/internal/shell"
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
	target := p.Options.Target.String()
	failoversMetric.Record(p.ClientConn.MetricsRecorder(), 1, target, from, to)
	was, now := slices.Index(p.config.Priorities, from), slices.Index(p.config.Priorities, to)
	switch {
	case was < 0:
		shell.Logger.Infof("priority: %s: from %q to %q, which is %v: %s", target, from, to, state, p.why(from))
	case was < now:
		shell.Logger.Warningf("priority: %s: down from %q to %q, which is %v: %s", target, from, to, state, p.why(from))
	default:
		shell.Logger.Infof("priority: %s: back up from %q to %q, which is %v: %s", target, from, to, state, p.why(from))
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
	case !c.Refused() && c.State().ConnectivityState == connectivity.Connecting:
		return fmt.Sprintf("%q did not connect in time", name)
	}
	return fmt.Sprintf("%q failed: %v", name, c.LastError())
}
