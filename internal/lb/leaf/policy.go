// Package leaf implements the understudy_endpoint_policy policy. It lets users choose any policy to
// go below it, and shows that policy's endpoints on pages and in metrics.
//
//	{"understudy_endpoint_policy": {"childPolicy": [{"least_request_experimental": {"choiceCount": 2}}]}}
//
//	field        type              default   range         from
//	childPolicy  list of policies  required  at least one  ours
//
// We wrap the child's subchannels, not the child itself, so we don't need to know anything about
// it. A lazy policy stays IDLE until its first call. That won't do here: if a priority exists, we
// want it connected, and with overflow only READY ones get calls. So if the child is IDLE, we make
// it connect to one endpoint right away.
//
// This package also has the meter for endpoints, which package weightedroundrobin uses as well.
package leaf

import (
	"context"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	"github.com/understudy-lb/understudy/internal/lb/shell"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
)

const Name = "understudy_endpoint_policy"

func init() { shell.Register(Name, newBuilder) }

func newBuilder(name string) balancer.Builder {
	return shell.Spec[lbconfig.EndpointPolicy]{Name: "endpoint_policy", New: newPolicy}.Builder(name)
}

type policy struct {
	*shell.Shell
	child     *shell.Child
	childName string
	state     balancer.State
	watched   bool
	meter     Meter
	endpoints endpoints
}

func newPolicy(s *shell.Shell) shell.Policy[lbconfig.EndpointPolicy] {
	p := &policy{Shell: s, state: shell.Connecting()}
	p.child = s.NewChild("", shell.Handlers{Reported: p.reported})
	p.meter = Meter{Shell: s, TakePicks: p.endpoints.takePicks, Counting: p.Publish}
	return p
}

// Begin updates the child. We strip the metrics' labels first, or the child might mistake new ones
// for a change.
func (p *policy) Begin(c *lbconfig.EndpointPolicy, state resolver.State) {
	labels, state := stateattr.TakeLabels(stateattr.WithoutChannel(state))
	p.meter.SetLabels(labels)
	p.endpoints.update(state.Endpoints)
	if len(state.Endpoints) == 0 {
		p.Refuse(balancer.ErrBadResolverState)
	}
	child := c.ChildPolicy
	p.childName = child.Name()
	child.Builder = wrapper{child.Builder, p}
	p.child.Update(child, state)
}

func (p *policy) End() {}

func (p *policy) reported(c *shell.Child, state balancer.State) {
	before := p.state.ConnectivityState
	p.state = state
	p.Publish()
	if state.ConnectivityState == connectivity.Idle && before != connectivity.Idle {
		c.ExitIdle()
		go ask(state.Picker) // not on this goroutine, since the child may be holding a lock
	}
}

// ask asks for a pick just like a call would, which makes a lazy policy connect.
func ask(picker balancer.Picker) {
	result, err := picker.Pick(balancer.PickInfo{Ctx: context.Background()})
	if err == nil && result.Done != nil {
		result.Done(balancer.DoneInfo{})
	}
}

func (p *policy) State() balancer.State {
	state := p.state
	state.Picker = &picker{child: state.Picker, endpoints: &p.endpoints, counts: p.meter.Counts(), records: p.watched}
	return state
}

func (p *policy) Settled(closed bool) {
	if closed {
		p.meter.Close()
	} else {
		p.meter.Set(p.endpoints.count())
	}
}

func (p *policy) Watched(watched bool) {
	p.watched = watched
	p.Publish()
}

func (p *policy) Children(yield func(string, shell.Below) bool) {
	if p.child.Exists() {
		yield("", p.child)
	}
}

func (p *policy) Describe(s *shell.Snapshot) {
	s.Details = shell.EndpointPolicy{Name: p.childName}
	s.Children = p.endpoints.snapshots()
}

func (p *policy) ExitIdle() { p.child.ExitIdle() }

type wrapper struct {
	balancer.Builder
	policy *policy
}

func (w wrapper) Build(cc balancer.ClientConn, opts balancer.BuildOptions) balancer.Balancer {
	return w.Builder.Build(&clientConn{cc, w.policy}, opts)
}

type clientConn struct {
	balancer.ClientConn
	policy *policy
}

func (c *clientConn) NewSubConn(addresses []resolver.Address, opts balancer.NewSubConnOptions) (balancer.SubConn, error) {
	s := &subConn{policy: c.policy, listener: opts.StateListener}
	if len(addresses) > 0 {
		s.endpoint = c.policy.endpoints.of(addresses[0])
	}
	opts.StateListener = s.changed
	conn, err := c.ClientConn.NewSubConn(addresses, opts)
	if err != nil {
		return nil, err
	}
	s.SubConn = conn
	s.endpoint.add(s)
	return s, nil
}

// UpdateAddresses is deprecated, but some policies still call it.
func (c *clientConn) UpdateAddresses(sc balancer.SubConn, addresses []resolver.Address) {
	if s, ok := sc.(*subConn); ok {
		sc = s.SubConn
	}
	c.ClientConn.UpdateAddresses(sc, addresses)
}

// RemoveSubConn is deprecated, but some policies still call it.
func (c *clientConn) RemoveSubConn(sc balancer.SubConn) { sc.Shutdown() }

// picker counts calls. The child's picker returns our subchannels, and we return the ones that the
// policies above us know instead.
type picker struct {
	child           balancer.Picker
	endpoints       *endpoints
	counts, records bool
}

func (p *picker) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	result, err := p.child.Pick(info)
	if err != nil {
		return result, err
	}
	s, ok := result.SubConn.(*subConn)
	if !ok {
		return result, nil
	}
	result.SubConn = s.SubConn
	if p.counts {
		p.endpoints.picks.Add(1)
	}
	if p.records {
		return s.endpoint.record.Begin(result), nil
	}
	return result, nil
}

func (p *picker) Failure() error {
	if err := shell.FailureOf(p.child); err != nil {
		return err
	}
	return p.endpoints.failure()
}

type subConn struct {
	balancer.SubConn
	policy   *policy
	endpoint *endpoint
	listener func(balancer.SubConnState)

	// guarded by endpoints.mu
	state  connectivity.State
	health connectivity.State // READY if the child doesn't listen
	failed bool               // has failed, and hasn't been READY since (gRFC A62)
	err    error
}

func (s *subConn) changed(state balancer.SubConnState) {
	s.policy.endpoints.record(s, func() {
		s.state, s.health = state.ConnectivityState, connectivity.Ready
		switch state.ConnectivityState {
		case connectivity.Ready:
			s.failed = false
		case connectivity.TransientFailure:
			s.failed, s.err = true, state.ConnectionError
		case connectivity.Idle, connectivity.Connecting, connectivity.Shutdown:
		}
	})
	if s.listener != nil {
		s.listener(state)
	}
}

// RegisterHealthListener passes on the server's health, and ejections by outlier detection.
func (s *subConn) RegisterHealthListener(listener func(balancer.SubConnState)) {
	if listener == nil {
		s.SubConn.RegisterHealthListener(nil)
		return
	}
	s.SubConn.RegisterHealthListener(func(state balancer.SubConnState) {
		s.policy.endpoints.record(s, func() {
			if s.health = state.ConnectivityState; s.health == connectivity.TransientFailure {
				s.err = state.ConnectionError
			}
		})
		listener(state)
	})
}

func (s *subConn) Shutdown() {
	s.endpoint.remove(s)
	s.SubConn.Shutdown()
}

func stateOf(conns []*subConn) (state connectivity.State, err error) {
	state, failed := connectivity.Idle, 0
	for _, s := range conns {
		switch {
		case s.state == connectivity.Ready && s.health == connectivity.Ready:
			return connectivity.Ready, nil
		case s.state == connectivity.Ready && s.health == connectivity.TransientFailure:
			return connectivity.TransientFailure, s.err
		case s.failed:
			failed, err = failed+1, s.err
		case s.state == connectivity.Connecting, s.state == connectivity.Ready:
			state = connectivity.Connecting
		}
	}
	if failed > 0 && failed == len(conns) {
		return connectivity.TransientFailure, err
	}
	return state, nil
}
