package weightedroundrobin

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	core "github.com/understudy-lb/understudy/internal/core/weightedroundrobin"
	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
	"github.com/understudy-lb/understudy/internal/lb/leaf"
	"github.com/understudy-lb/understudy/internal/lb/shell"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
	"github.com/understudy-lb/understudy/internal/lb/weighted"
	"github.com/understudy-lb/understudy/policy/pickfirst"
)

type policy struct {
	*shell.Shell
	core       *core.Core[endpointChild]
	endpoint   balancer.Builder
	config     core.Config
	attributes *attributes.Attributes
	picker     *weighted.Picker // nil if no child is READY
	watched    bool
	meter      leaf.Meter
	picks      pickCount
	failures   leaf.Counts                // only for failures that have their own series
	scheduled  weighted.Scheduled[*child] // only used while a debug page is watching
	logged     struct{ duplicate, noAddress, largeWeights bool }
}

var errNoEndpoints = fmt.Errorf("weighted_round_robin: %w", shell.ErrNoEndpoints)

// spec describes the policy. endpoint builds the policies of the endpoints, whose Close must shut
// down all of their subchannels.
func spec(endpoint func() balancer.Builder) shell.Spec[lbconfig.WeightedRoundRobin] {
	return shell.Spec[lbconfig.WeightedRoundRobin]{
		Name:    "weighted_round_robin",
		Default: lbconfig.New[lbconfig.WeightedRoundRobin],
		New: func(s *shell.Shell) shell.Policy[lbconfig.WeightedRoundRobin] {
			p := &policy{Shell: s, core: core.New[endpointChild](), endpoint: endpoint()}
			p.meter = leaf.Meter{Shell: s, TakePicks: p.picks.take, Counting: p.core.Outdated}
			return p
		},
	}
}

func defaultLeaf() balancer.Builder { return balancer.Get(pickfirst.Name) }

func coreConfig(c *lbconfig.WeightedRoundRobin) core.Config {
	config := core.Config{StartRandom: c.StartPoint == lbconfig.StartRandom}
	if s := c.SlowStart; s != nil {
		config.SlowStart = core.SlowStart{
			Window:           time.Duration(s.Window),
			Aggression:       s.Aggression,
			MinWeightPercent: s.MinWeightPercent,
		}
	}
	return config
}

// Begin assigns each endpoint to a child. If only an endpoint's weight has changed, its child needs
// no update.
func (p *policy) Begin(c *lbconfig.WeightedRoundRobin, state resolver.State) {
	p.config = coreConfig(c)
	labelValues, state := stateattr.TakeLabels(stateattr.WithoutChannel(state))
	p.meter.SetLabels(labelValues)
	// Without this attribute, children ignore health checks, and unhealthy endpoints would get
	// calls.
	state = stateattr.EnableHealthListener(state)
	p.core.Begin(p.config, len(state.Endpoints))
	outdated := p.assign(state.Endpoints)
	removed, sum := p.core.Endpoints()
	for _, c := range removed {
		p.scheduled.Forget(c)
		p.failures[c.Attached.series]--
		c.Attached.Remove()
	}
	if sum > math.MaxUint32 {
		p.LogOnce(&p.logged.largeWeights, "the weights of %d endpoints sum to %d, more than %d, and are scaled down", len(p.core.Order()), sum, uint32(math.MaxUint32))
	}
	if len(p.core.Order()) == 0 {
		p.Refuse(balancer.ErrBadResolverState)
	}
	if !stateattr.Same(func() bool { return p.attributes.Equal(state.Attributes) }) {
		outdated = p.core.Order()
	}
	p.attributes = state.Attributes
	p.updateChildren(outdated)
}

// assign assigns each endpoint to a child, and returns the children that need an update.
func (p *policy) assign(endpoints []resolver.Endpoint) (outdated []*child) {
	s := search{previous: p.core.Previous()}
	for _, endpoint := range endpoints {
		var origin core.Origin
		c := s.find(endpoint)
		unchanged := c != nil
		if unchanged {
			if c.Attached.endpoint.Attributes != endpoint.Attributes {
				c.Attached.endpoint.Attributes, c.Attached.weight = endpoint.Attributes, weightOf(endpoint)
			}
			origin = p.core.KnownEndpoint(c, c.Attached.weight)
		} else if key, ok := hierarchy.KeyOf(endpoint); ok {
			c, origin = p.core.Endpoint(key, weightOf(endpoint))
		} else {
			p.LogOnce(&p.logged.noAddress, "an endpoint without an address is ignored")
			continue
		}
		if origin == core.NewChild {
			p.build(c)
		} else if origin == core.Duplicate {
			p.LogOnce(&p.logged.duplicate, "endpoint %q is given twice; its weights are added", hierarchy.Addresses(endpoint)[0].Addr)
			continue
		}
		if !unchanged {
			c.Attached.outdated = c.Attached.outdated || origin == core.NewChild || !equalExceptWeight(c.Attached.endpoint, endpoint)
			c.Attached.endpoint, c.Attached.weight = endpoint, weightOf(endpoint)
		}
		if c.Attached.outdated {
			outdated = append(outdated, c)
		}
	}
	return outdated
}

// updateChildren starts at a random child if startPoint is "random". Otherwise every client would
// connect to the same endpoint first.
func (p *policy) updateChildren(outdated []*child) {
	first := 0
	if p.config.StartRandom && len(outdated) > 0 {
		first = rand.IntN(len(outdated))
	}
	for i := range outdated {
		p.update(outdated[(i+first)%len(outdated)])
	}
}

func (p *policy) End() { p.core.End() }

func (p *policy) Due() (deadline time.Time, due bool) { return p.core.Due() }

func (p *policy) State() balancer.State {
	if p.picker != nil {
		p.picker.Save()
		p.scheduled.Use(nil, nil)
		p.picker = nil
	}
	now := time.Now()
	switch p.core.Publish(now) {
	case core.Ready:
		p.picker = p.newPicker(now)
		p.picks.use(p.picker)
		return balancer.State{ConnectivityState: connectivity.Ready, Picker: p.picker}
	case core.TransientFailure:
		return p.failure()
	case core.Idle:
		// We make IDLE children connect ourselves, so calls just wait.
		return balancer.State{ConnectivityState: connectivity.Idle, Picker: shell.Queue}
	}
	return shell.Connecting()
}

// failure returns the state to publish if all children have failed. Calls get the error of one of
// them. If there are several, the error also says how many.
func (p *policy) failure() balancer.State {
	child := p.core.Failed()
	if child == nil {
		return shell.Failed(errNoEndpoints)
	}
	state := child.Attached.State()
	if err := shell.FailureOf(state.Picker); err != nil && len(p.core.Order()) > 1 {
		return shell.Failed(&shell.AllFailed{Endpoints: len(p.core.Order()), Example: err})
	}
	return state
}

func (p *policy) newPicker(now time.Time) *weighted.Picker {
	children, weights := p.core.Ready(now)
	counts := len(children) == 1 && p.meter.Counts()
	picker := weighted.New(weights, func(i int) balancer.Picker {
		c := &children[i].Attached
		picker := c.State().Picker
		if p.watched {
			picker = &shell.Recorded{Picker: picker, Record: c.ensureRecord()}
		}
		if counts {
			picker = &weighted.Counting{Picker: picker}
		}
		return picker
	}, func(i int) *weighted.Position { return &children[i].Attached.position })
	if p.watched {
		p.scheduled.Use(picker, children)
	}
	return picker
}

func (p *policy) Settled(closed bool) {
	if closed {
		p.meter.Close()
	} else {
		p.meter.Set(p.counts())
	}
}

func (p *policy) Watched(watched bool) {
	p.watched = watched
	p.core.Outdated()
}

func (p *policy) Children(yield func(string, shell.Below) bool) {
	for _, c := range p.core.Order() {
		if !yield(c.Attached.name(), &c.Attached.Instance) {
			return
		}
	}
}

func (p *policy) Describe(s *shell.Snapshot) {
	s.Details = shell.WeightedRoundRobin{Scheduled: p.scheduled.Now(p.core.Order())}
	for i, c := range p.core.Order() {
		s.Children[i].Details = shell.Endpoint{Addresses: hierarchy.Addresses(c.Attached.endpoint), Weight: c.Weight(), Record: c.Attached.ensureRecord()}
	}
}

func (p *policy) ExitIdle() {
	for _, c := range p.core.Order() {
		if c.State() == core.Idle {
			c.Attached.ExitIdle()
		}
	}
}
