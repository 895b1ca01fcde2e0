package weightedtarget

import (
	"errors"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	core "github.com/understudy-lb/understudy/internal/core/weightedtarget"
	"github.com/understudy-lb/understudy/internal/lb/shell"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
	"github.com/understudy-lb/understudy/internal/lb/weighted"
)

type policy struct {
	*shell.Shell
	core     core.Core
	config   *lbconfig.WeightedTarget
	state    resolver.State
	groups   map[string][]resolver.Endpoint
	children map[string]*child // including removed ones that we still retain
	picker   *weighted.Picker  // nil if no child is READY

	watched   bool
	scheduled weighted.Scheduled[string] // only used while a debug page is watching
}

type child struct {
	*shell.Child
	weight       uint32
	position     weighted.Position // its place in the pick sequence when its last picker was replaced
	effective    balancer.State    // last reported state, except that a failed child that's CONNECTING again still has its failure here
	refusedState balancer.State    // if the child has refused its update, we use this instead of effective
}

const retentionTimer = 0

var errNoTargets = errors.New("weighted_target: no targets to pick from")

func newPolicy(s *shell.Shell) shell.Policy[lbconfig.WeightedTarget] {
	return &policy{Shell: s, children: make(map[string]*child)}
}

func (p *policy) Begin(config *lbconfig.WeightedTarget, state resolver.State) {
	p.config, p.state = config, state
	p.groups = p.Split(state.Endpoints, func(name string) bool { _, ok := config.Targets[name]; return ok })
	p.apply(p.core.Update(slices.Collect(maps.Keys(config.Targets)), time.Duration(config.RemovedChildRetention)))
	p.state, p.groups = resolver.State{}, nil
}

func (p *policy) apply(actions []core.Action) {
	labels := stateattr.LabelsOf(p.state)
	for _, a := range actions {
		c := p.children[a.Child]
		switch a.Kind {
		case core.Create:
			p.children[a.Child] = p.newChild(a.Child)
		case core.Update:
			target := p.config.Targets[a.Child]
			c.weight = target.Weight
			labels.Locality = a.Child
			c.Update(target.ChildPolicy, stateattr.SetLabels(shell.WithOnlyEndpoints(p.groups[a.Child], p.state), labels))
		case core.Retain:
			c.StartTimer(retentionTimer, a.After, func() { p.apply(p.core.RetentionEnded(a.Child)) })
		case core.Return:
			c.StopTimer(retentionTimer)
		case core.Destroy:
			p.scheduled.Forget(a.Child)
			c.Close()
			delete(p.children, a.Child)
		}
	}
}

func (p *policy) newChild(name string) *child {
	c := &child{effective: shell.Connecting(), position: weighted.NewPosition(p.config.StartPoint == lbconfig.StartRandom)}
	c.Child = p.NewChild(name, shell.Handlers{Reported: func(_ *shell.Child, state balancer.State) {
		if c.Refused() {
			c.refusedState = state
			p.core.Refuse(name)
		} else if p.core.Report(name, states[state.ConnectivityState]) {
			c.effective = state
		}
		if !p.Updating() { // during an update, End does this once for all of them
			p.wake()
		}
		if p.core.Stale() {
			p.Publish()
		}
	}})
	return c
}

func (p *policy) wake() {
	for _, name := range p.core.Wake() {
		p.children[name].ExitIdle()
	}
}

// End always publishes, since weights may have changed.
func (p *policy) End() {
	p.wake()
	p.Publish()
}

func (p *policy) State() balancer.State {
	if p.picker != nil {
		p.picker.Save()
		p.scheduled.Use(nil, nil)
		p.picker = nil
	}
	aggregate := p.core.Publish()
	names := p.core.In(aggregate)
	switch {
	case len(names) == 0:
		return shell.Failed(errNoTargets)
	case aggregate == core.Connecting:
		return shell.Connecting()
	}
	picker := p.pickerOf(names)
	if aggregate == core.Ready {
		p.picker = picker // only a picker that's published may change the children's positions
		if p.watched {
			p.scheduled.Use(picker, names)
		}
	}
	return balancer.State{ConnectivityState: connectivityOf[aggregate], Picker: picker}
}

func (p *policy) pickerOf(names []string) *weighted.Picker {
	var children []*child
	var weights []uint32
	for _, name := range names {
		c := p.children[name]
		children, weights = append(children, c), append(weights, c.weight)
	}
	return weighted.New(weights, func(i int) balancer.Picker {
		if c := children[i]; c.Refused() {
			return c.refusedState.Picker
		}
		return children[i].effective.Picker
	}, func(i int) *weighted.Position { return &children[i].position })
}

func (p *policy) Children(yield func(string, shell.Below) bool) { shell.ByName(p.children, yield) }

func (p *policy) ExitIdle() {
	for name, c := range p.children {
		if p.core.Has(name) {
			c.ExitIdle()
		}
	}
}

var connectivityOf = [...]connectivity.State{
	core.Ready:            connectivity.Ready,
	core.Connecting:       connectivity.Connecting,
	core.Idle:             connectivity.Idle,
	core.TransientFailure: connectivity.TransientFailure,
}

func (p *policy) Watched(watched bool) {
	p.watched = watched
	p.Publish()
}

func (p *policy) Describe(s *shell.Snapshot) {
	var names []string
	for i := range s.Children {
		names = append(names, s.Children[i].Name)
	}
	s.Details = shell.WeightedTarget{Scheduled: p.scheduled.Now(names)}
	for i := range s.Children {
		name := s.Children[i].Name
		target := shell.Target{CountsAs: p.core.CountsAs(name)}
		if p.core.Has(name) {
			target.Weight = p.children[name].weight
		}
		s.Children[i].Details = target
	}
}

var states = [...]core.State{
	connectivity.Idle:             core.Idle,
	connectivity.Connecting:       core.Connecting,
	connectivity.Ready:            core.Ready,
	connectivity.TransientFailure: core.TransientFailure,
	connectivity.Shutdown:         core.TransientFailure,
}
