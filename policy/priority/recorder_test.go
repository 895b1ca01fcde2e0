package priority

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	core "github.com/understudy-lb/understudy/internal/core/priority"
	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
	"github.com/understudy-lb/understudy/internal/lb/shell"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
	scenario "github.com/understudy-lb/understudy/internal/testing/priorityscenario"
)

type recorder struct {
	lbtest.ClientConn

	policy balancer.Balancer
	single []string

	mu       sync.Mutex
	children map[string]*scriptedChild
	script   map[string][]scenario.Reaction
	log      []string
}

func newRecorder() *recorder { return newRecorderTo("/target") }

func newRecorderTo(path string) *recorder {
	r := &recorder{children: map[string]*scriptedChild{}}
	target := resolver.Target{URL: url.URL{Scheme: "lbtest", Path: path}}
	r.policy = shell.Spec[lbconfig.Priority]{Name: "priority", New: func(s *shell.Shell) shell.Policy[lbconfig.Priority] {
		p := newPolicy(s)
		p.(*policy).countConnections = r.countConnections
		return p
	}}.Builder(Name).Build(r, balancer.BuildOptions{Target: target})
	return r
}

func (r *recorder) countConnections(c lbconfig.Policy, _ []resolver.Endpoint, _ int) int {
	if slices.Contains(r.single, c.Config.(*lbtest.StubConfig).ID) {
		return 1
	}
	return 2
}

func (r *recorder) write(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = append(r.log, strings.TrimSpace(fmt.Sprintf(format, args...)))
}

func (r *recorder) Name() string { return "scripted" }

func (r *recorder) Build(cc balancer.ClientConn, _ balancer.BuildOptions) balancer.Balancer {
	return &scriptedChild{r: r, cc: cc}
}

type scriptedChild struct {
	r    *recorder
	cc   balancer.ClientConn
	name string
	last balancer.ClientConnState
}

func (c *scriptedChild) UpdateClientConnState(s balancer.ClientConnState) error {
	verb := "update"
	if c.name == "" {
		verb, c.name = "create", s.BalancerConfig.(*lbtest.StubConfig).ID
	}
	c.last = s
	var endpoints []string
	for _, e := range s.ResolverState.Endpoints {
		endpoints = append(endpoints, fmt.Sprintf("%s%v", e.Addresses[0].Addr, hierarchy.Path(e)))
	}
	c.r.write("%s %s %s", verb, c.name, strings.Join(endpoints, " "))
	c.r.mu.Lock()
	c.r.children[c.name] = c
	script := c.r.script[c.name]
	c.r.mu.Unlock()
	for _, reaction := range script {
		if reaction.Err != nil {
			return reaction.Err
		}
		c.report(reaction.Report)
	}
	return nil
}

func (c *scriptedChild) report(report scenario.Report) {
	c.cc.UpdateState(balancer.State{ConnectivityState: grpcStates[report.State], Picker: picker{c.name, report}})
}

func (c *scriptedChild) ResolverError(err error)                                    { c.r.write("resolver-error %s %v", c.name, err) }
func (c *scriptedChild) UpdateSubConnState(balancer.SubConn, balancer.SubConnState) {}
func (c *scriptedChild) ExitIdle()                                                  { c.r.write("exit-idle %s", c.name) }

func (c *scriptedChild) Close() {
	c.r.write("destroy %s", c.name)
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	delete(c.r.children, c.name)
}

type picker struct {
	child  string
	report scenario.Report
}

func (p picker) Pick(balancer.PickInfo) (balancer.PickResult, error) {
	switch p.report.State {
	case core.Ready:
		return balancer.PickResult{}, nil
	case core.TransientFailure:
		return balancer.PickResult{}, p.report.Err()
	}
	return balancer.PickResult{}, balancer.ErrNoSubConnAvailable
}

func (p picker) Failure() error { return p.report.Err() }

var grpcStates = map[core.State]connectivity.State{
	core.Idle:             connectivity.Idle,
	core.Connecting:       connectivity.Connecting,
	core.Ready:            connectivity.Ready,
	core.TransientFailure: connectivity.TransientFailure,
}

func (r *recorder) UpdateState(s balancer.State) {
	if e, ok := s.Picker.(*exhaustedPicker); ok {
		s.Picker = e.child // records the child's own error; other tests check the reasons that exhaustedPicker adds
	}
	inner := s.Picker
	if p, ok := inner.(picker); ok {
		if line := p.report.Line(p.child); grpcStates[p.report.State] == s.ConnectivityState {
			r.write("%s", line)
			return
		}
		r.write("publish %v with the picker of %v", s.ConnectivityState, p)
		return
	}
	_, err := inner.Pick(balancer.PickInfo{})
	if errors.Is(err, balancer.ErrNoSubConnAvailable) {
		r.write("publish %v", s.ConnectivityState)
		return
	}
	r.write("publish %v: %v", s.ConnectivityState, err)
}

func (r *recorder) ResolveNow(resolver.ResolveNowOptions) { r.write("resolve") }

func (r *recorder) Script(s map[string][]scenario.Reaction) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.script = s
}

func (r *recorder) Update(u scenario.Update) {
	err := r.policy.UpdateClientConnState(r.state(u))
	synctest.Wait()
	if err != nil {
		r.write("error: %v", err)
	}
}

func (r *recorder) state(u scenario.Update) balancer.ClientConnState {
	c := &lbconfig.Priority{
		Children:              map[string]lbconfig.PriorityChild{},
		Priorities:            u.Config.Priorities,
		FailoverTimeout:       lbconfig.Duration(u.Config.FailoverTimeout),
		ChildRetention:        lbconfig.Duration(u.Config.ChildRetention),
		RemovedChildRetention: lbconfig.Duration(u.Config.RemovedChildRetention),
		WarmStandby:           uint32(u.Config.WarmStandby),
		SourcePriorities:      u.Config.SourcePriorities,
		Overflow:              u.Config.Overflow,
	}
	for _, name := range u.Config.Children {
		c.Children[name] = lbconfig.PriorityChild{
			Config:                     lbconfig.Policy{Builder: r, Config: &lbtest.StubConfig{ID: name}},
			IgnoreReresolutionRequests: slices.Contains(u.Ignore, name),
		}
	}
	var state resolver.State
	for _, e := range u.Endpoints {
		endpoint := resolver.Endpoint{Addresses: []resolver.Address{{Addr: e.Address}}}
		if len(e.Path) > 0 {
			endpoint = hierarchy.Set(endpoint, e.Path...)
		}
		state.Endpoints = append(state.Endpoints, endpoint)
	}
	return balancer.ClientConnState{ResolverState: state, BalancerConfig: c}
}

func (r *recorder) child(name string) *scriptedChild {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.children[name]
}

func (r *recorder) Report(name string, report scenario.Report) {
	if c := r.child(name); c != nil {
		c.report(report)
	}
}

func (r *recorder) Resolve(name string) {
	if c := r.child(name); c != nil {
		c.cc.ResolveNow(resolver.ResolveNowOptions{})
	}
}

func (r *recorder) Advance(d time.Duration) { <-time.After(d) }
func (r *recorder) ExitIdle()               { r.policy.ExitIdle() }
func (r *recorder) ResolverError(err error) { r.policy.ResolverError(err) }
func (r *recorder) Close()                  { r.policy.Close() }

func (r *recorder) Take() []string {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	log := r.log
	r.log = nil
	return log
}

func parse(raw string) *lbconfig.Priority {
	c, err := newBuilder(Name).(balancer.ConfigParser).ParseConfig([]byte(raw))
	if err != nil {
		panic(err)
	}
	return c.(*lbconfig.Priority)
}
