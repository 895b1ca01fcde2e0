package failover

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"

	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"

	"github.com/understudy-lb/understudy/internal/channel/join"
	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
	"github.com/understudy-lb/understudy/internal/testing/given"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
	"github.com/understudy-lb/understudy/internal/testing/settle"
)

type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) add(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(format, args...))
}

func (j *journal) take() string {
	settle.Wait()
	j.mu.Lock()
	defer j.mu.Unlock()
	s := ""
	for _, line := range j.lines {
		s += line + "\n"
	}
	j.lines = nil
	return s
}

type channel struct {
	resolver.ClientConn
	journal
	onUpdate  func(resolver.State)
	lastState resolver.State
}

func (c *channel) UpdateState(state resolver.State) error {
	if join.IsAwaiting(state) { // the source has not answered yet
		return nil
	}
	c.add("state%s", c.describe(state))
	c.lastState = state
	if c.onUpdate != nil {
		c.onUpdate(state)
	}
	return nil
}

func (c *channel) ReportError(err error) { c.add("error %v", err) }

func (c *channel) ParseServiceConfig(json string) *serviceconfig.ParseResult {
	return &serviceconfig.ParseResult{Config: rawConfig{json: json}}
}

type rawConfig struct {
	serviceconfig.Config
	json string
}

func (c *channel) describe(state resolver.State) string {
	var config struct {
		LoadBalancingConfig []map[string]struct{ Priorities []string }
	}
	if err := json.Unmarshal([]byte(lbtest.StateJSON(state, state.ServiceConfig.Config.(rawConfig).json)), &config); err != nil {
		return err.Error()
	}
	groups := hierarchy.Group(state.Endpoints)
	s := ""
	for _, child := range config.LoadBalancingConfig[0]["understudy_priority"].Priorities {
		s += " " + child + " ["
		for i, e := range groups[child] {
			if i > 0 {
				s += " "
			}
			s += e.Addresses[0].Addr
			if name := e.Addresses[0].ServerName; name != "" {
				s += "/" + name
			}
		}
		s += "]"
	}
	return s
}

type fakeBuilder struct {
	journal
	resolvers   map[string]*fakeResolver
	onBuild     func(*fakeResolver)
	failingName string
}

func newFakeBuilder() *fakeBuilder { return &fakeBuilder{resolvers: make(map[string]*fakeResolver)} }

func (*fakeBuilder) Scheme() string { return "fake" }

func (f *fakeBuilder) Build(target resolver.Target, cc resolver.ClientConn, opts resolver.BuildOptions) (resolver.Resolver, error) {
	r := &fakeResolver{name: target.Endpoint(), cc: cc, opts: opts, fakeBuilder: f}
	if f.failingName == r.name {
		return nil, errors.New("it cannot be built")
	}
	f.resolvers[r.name] = r
	if f.onBuild != nil {
		f.onBuild(r)
	}
	return r, nil
}

type fakeResolver struct {
	name         string
	cc           resolver.ClientConn
	opts         resolver.BuildOptions
	fakeBuilder  *fakeBuilder
	onResolveNow func()
	onClose      func()
}

func (r *fakeResolver) ResolveNow(resolver.ResolveNowOptions) {
	r.fakeBuilder.add("asked %s", r.name)
	if r.onResolveNow != nil {
		r.onResolveNow()
	}
}

func (r *fakeResolver) Close() {
	r.fakeBuilder.add("closed %s", r.name)
	if r.onClose != nil {
		r.onClose()
	}
}

func (r *fakeResolver) answer(addresses ...string) {
	state := resolver.State{Endpoints: []resolver.Endpoint{}}
	for _, a := range addresses {
		state.Endpoints = append(state.Endpoints, resolver.Endpoint{Addresses: []resolver.Address{{Addr: a}}})
	}
	if err := r.cc.UpdateState(state); err != nil {
		r.fakeBuilder.add("told %s: %v", r.name, err)
	}
}

func (r *fakeResolver) fail(text string) { r.cc.ReportError(errors.New(text)) }

func target(names ...string) resolver.Target {
	return mustParseTarget("failover:///fake:" + strings.Join(names, ",fake:"))
}

func mustParseTarget(text string) resolver.Target {
	u, err := url.Parse(text)
	if err != nil {
		panic(err)
	}
	return resolver.Target{URL: *u}
}

func build(f *fakeBuilder, cc resolver.ClientConn, names ...string) (resolver.Resolver, error) {
	return given.Builder(Scheme, given.Sources(WithResolvers(f))).Build(target(names...), cc, resolver.BuildOptions{})
}
