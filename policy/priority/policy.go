package priority

import (
	"hash/maphash"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	core "github.com/understudy-lb/understudy/internal/core/priority"
	"github.com/understudy-lb/understudy/internal/lb/shell"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
)

type policy struct {
	*shell.Shell

	reresolution atomic.Pointer[reresolution]

	core             *core.Core
	countConnections func(policy lbconfig.Policy, endpoints []resolver.Endpoint, limit int) int
	children         map[string]*shell.Child
	statuses         map[string]*childStatus
	titles           map[string]string
	config           *lbconfig.Priority
	state            resolver.State
	childState       resolver.State // resolver state that all children get
	stateOf          func(child string) resolver.State

	chosen    string // the child whose state we publish next, or ""
	published balancer.State
	inUse     string // the child whose state we published last, or ""
	journal   journal
	standby   standbyLimit
	shares    shares
	meter     meter
}

func newPolicy(s *shell.Shell) shell.Policy[lbconfig.Priority] {
	p := &policy{
		Shell:            s,
		core:             core.New(),
		countConnections: connections,
		children:         make(map[string]*shell.Child),
		statuses:         make(map[string]*childStatus),
		standby:          standbyLimit{maphash.MakeSeed(), make(map[string]bool)},
		shares:           shares{start: time.Now(), children: make(map[string]*childShare)},
		meter:            meter{counted: make(map[labels]shareSum)},
	}
	s.ClientConn = &clientConn{s.ClientConn, &p.shares.marks}
	return p
}

func coreConfig(c *lbconfig.Priority) core.Config {
	return core.Config{
		Children:              slices.Collect(maps.Keys(c.Children)),
		Priorities:            c.Priorities,
		SourcePriorities:      c.SourcePriorities,
		FailoverTimeout:       time.Duration(c.FailoverTimeout),
		ChildRetention:        time.Duration(c.ChildRetention),
		RemovedChildRetention: time.Duration(c.RemovedChildRetention),
		WarmStandby:           int(c.WarmStandby),
		Overflow:              c.Overflow,
	}
}

func (p *policy) Begin(config *lbconfig.Priority, state resolver.State) {
	resolveNow, state := stateattr.TakeResolveNow(state)
	given, state := stateattr.TakeConfig(state)
	if given, ok := given.(*lbconfig.Priority); ok && len(config.Children) == 0 {
		config = given
	}
	p.config, p.state, p.childState = config, state, stateattr.BelowPriority(state)
	p.beginShares()
	p.updateTitles()
	p.reresolution.Store(&reresolution{children: config.Children, resolveNow: resolveNow})
	p.stateOf = p.Split(p.childState, func(child string) bool {
		_, ok := config.Children[child]
		return ok
	})
	p.apply(p.core.BeginUpdate(coreConfig(config)))
}

func (p *policy) End() {
	p.apply(p.core.EndUpdate())
	p.settleNow()
}

func (p *policy) State() balancer.State {
	cause := ""
	if p.inUse != p.chosen && !p.mayBeBackSoon(p.inUse) {
		cause = p.recordFailover(p.inUse, p.chosen, p.published.ConnectivityState)
		p.inUse = p.chosen
		p.journal.lastChange = time.Now()
	}
	p.updateLeftHighest()
	p.logAvailability()
	p.reportInUse(cause)
	return p.withShares(p.published)
}

func (p *policy) newChild(name string) *shell.Child {
	return p.NewChild(name, shell.Handlers{
		Reported: func(_ *shell.Child, state balancer.State) {
			p.handle(name, p.core.Reported(name, states[state.ConnectivityState]))
		},
		Refused: func(*shell.Child, balancer.State) {
			p.handle(name, p.core.Refused(name))
		},
		Title:      p.sourceTitle,
		ResolveNow: p.resolveNow,
	})
}

func (p *policy) Children(yield func(string, shell.Below) bool) { shell.ByName(p.children, yield) }

func (p *policy) ExitIdle() {
	if c, ok := p.children[p.core.InUse()]; ok {
		c.ExitIdle()
	}
}

func (p *policy) Describe(s *shell.Snapshot) {
	d := shell.Priority{InUse: p.inUse, Since: p.journal.lastChange, Inner: p.shares.inner, Backoff: p.backoff()}
	for _, name := range p.config.Priorities {
		if p.children[name] == nil {
			d.Unused = append(d.Unused, p.title(name))
		}
	}
	s.Details = d
	for i := range s.Children {
		c := &s.Children[i]
		c.Title = p.title(c.Name)
		c.Details = p.describe(c.Name)
	}
}

func (p *policy) describe(name string) shell.PriorityChild {
	child := shell.PriorityChild{Priority: slices.Index(p.config.Priorities, name), Endpoints: len(p.stateOf(name).Endpoints)}
	child.CountsAs, _ = p.core.State(name)
	child.Since, _ = p.stateTimes(name)
	child.Standby = p.core.Standby(name)
	if c := p.shares.children[name]; c != nil && child.Priority >= 0 {
		child.Share = c.read
	}
	if n := p.statuses[name]; n != nil {
		child.Why = p.currentProblem(name, child.CountsAs, n.lastFailure)
	}
	if child.Why == "" && p.isBypassed(name) {
		child.Why = "has lost its connections"
	}
	for timer, field := range map[int]*time.Time{failoverTimer: &child.Failover, deactivationTimer: &child.Deactivation} {
		if end, running := p.children[name].TimerEnds(timer); running {
			*field = end
		}
	}
	return child
}

type reresolution struct {
	children   map[string]lbconfig.PriorityChild
	resolveNow func(child string, ignored bool) // nil to call the ClientConn's ResolveNow
}

func (p *policy) resolveNow(name string) {
	r := p.reresolution.Load()
	config, ok := r.children[name]
	switch {
	case !ok: // it was removed, so it has no use for a new answer
	case r.resolveNow != nil:
		r.resolveNow(name, config.IgnoreReresolutionRequests)
	case !config.IgnoreReresolutionRequests:
		p.ClientConn.ResolveNow(resolver.ResolveNowOptions{})
	}
}

var states = [...]core.State{
	connectivity.Idle:             core.Idle,
	connectivity.Connecting:       core.Connecting,
	connectivity.Ready:            core.Ready,
	connectivity.TransientFailure: core.TransientFailure,
	connectivity.Shutdown:         core.TransientFailure,
}
