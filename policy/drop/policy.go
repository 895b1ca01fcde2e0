package drop

import (
	"slices"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	"github.com/understudy-lb/understudy/internal/lb/shell"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
	"github.com/understudy-lb/understudy/internal/lb/tally"
)

type policy struct {
	*shell.Shell
	child        *shell.Child
	state        balancer.State
	categories   []lbconfig.DropCategory
	stateLabels  stateattr.Labels
	metricLabels []tally.Labels
}

func newPolicy(s *shell.Shell) shell.Policy[lbconfig.Drop] {
	p := &policy{Shell: s, state: shell.Connecting()}
	p.child = s.NewChild("", shell.Handlers{Reported: p.reported})
	return p
}

func (p *policy) reported(_ *shell.Child, state balancer.State) {
	p.state = state
	p.Publish()
}

// Begin updates the child. New categories apply from the next published state on, which is when the
// child reports, or at the end of the update.
func (p *policy) Begin(c *lbconfig.Drop, state resolver.State) {
	labels := stateattr.LabelsOf(state)
	if !slices.Equal(p.categories, c.DropCategories) || labels != p.stateLabels {
		p.stateLabels = labels
		p.categories = slices.Clone(c.DropCategories)
		p.metricLabels = labelsOf(p.Options.Target.String(), labels, p.categories)
		p.Publish()
	}
	p.child.Update(c.ChildPolicy, state)
}

func (p *policy) End() {}

func (p *policy) State() balancer.State {
	state := p.state
	if state.ConnectivityState == connectivity.Ready && dropsAny(p.categories) {
		state.Picker = &picker{
			child:      state.Picker,
			categories: p.categories,
			recorder:   p.ClientConn.MetricsRecorder(),
			target:     p.Options.Target.String(),
			labels:     p.metricLabels,
		}
	}
	return state
}

func dropsAny(categories []lbconfig.DropCategory) bool {
	return slices.ContainsFunc(categories, func(c lbconfig.DropCategory) bool { return c.RequestsPerMillion > 0 })
}

func (p *policy) Children(yield func(string, shell.Below) bool) {
	if p.child.Exists() {
		yield("", p.child)
	}
}

func (p *policy) ExitIdle() { p.child.ExitIdle() }

func (p *policy) Describe(s *shell.Snapshot) {
	if len(p.categories) > 0 {
		s.Details = p.categories
	}
}
