package e2e

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/status"

	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
	"github.com/understudy-lb/understudy/policy/drop"
	"github.com/understudy-lb/understudy/policy/pickfirst"
	"github.com/understudy-lb/understudy/policy/priority"
	"github.com/understudy-lb/understudy/policy/weightedroundrobin"
	"github.com/understudy-lb/understudy/policy/weightedtarget"
)

var errFinal = fmt.Errorf("theirs: %w", status.Error(codes.PermissionDenied, "go away"))

// If gRPC gets an error that wraps a status, it fails even wait-for-ready calls with this error. No
// source or policy may give gRPC such an error, except to drop calls.
func TestErrorsForGRPCHaveNoStatus(t *testing.T) {
	t.Run("sources", func(t *testing.T) {
		for name, errs := range sourceErrors {
			t.Run(name, func(t *testing.T) { checkPlain(t, errs(t)) })
		}
	})
	t.Run("policies", func(t *testing.T) {
		for _, policy := range policies {
			for what, m := range policyFailures {
				if policy.leaf && m.needsChild || policy.name == pickfirst.Name && m.needsHealth {
					continue
				}
				t.Run(policy.name+"/"+what, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { checkPlain(t, policy.errorsAfter(t, m)) })
				})
			}
		}
	})
}

func checkPlain(t *testing.T, errs []error) {
	t.Helper()
	if len(errs) == 0 {
		t.Fatal("gRPC received no error")
	}
	for _, err := range errs {
		if s, isStatus := status.FromError(err); isStatus {
			t.Errorf("gRPC ends calls with %v: %v", s.Code(), err)
		}
	}
}

var finalStub = &lbtest.StubBuilder{PolicyName: "e2e_final", OnUpdate: func(s *lbtest.Stub, _ balancer.ClientConnState) error {
	if s.ID() == "empty" {
		return errors.Join(balancer.ErrBadResolverState, errFinal)
	}
	return errFinal
}}

func init() { balancer.Register(finalStub) }

// policyUnderTest is a policy and its configuration, in which %s is replaced by the configuration
// of the child policy.
type policyUnderTest struct {
	name, config string
	path         []string
	leaf         bool
}

var policies = []policyUnderTest{
	{priority.Name, `{"priorities":["a"],"children":{"a":{"config":%s}}}`, []string{"a"}, false},
	{weightedtarget.Name, `{"targets":{"a":{"weight":1,"childPolicy":%s}}}`, []string{"a"}, false},
	{drop.Name, `{"childPolicy":%s}`, nil, false},
	{weightedroundrobin.Name, `{}`, nil, true},
	{pickfirst.Name, `{}`, nil, true},
}

const leafConfig = `[{"understudy_weighted_round_robin":{}}]`

type failure struct {
	needsChild  bool // only for policies with a child policy in their configuration
	needsHealth bool // only for policies with health-checked endpoints
	cause       func(*testing.T, *policyUnderTest, balancer.Balancer, *lbtest.ClientConn) error
}

var policyFailures = map[string]failure{
	"the resolver fails at first": {cause: func(_ *testing.T, _ *policyUnderTest, b balancer.Balancer, _ *lbtest.ClientConn) error {
		b.ResolverError(errFinal)
		return nil
	}},
	"the resolver fails without endpoints": {cause: func(t *testing.T, p *policyUnderTest, b balancer.Balancer, _ *lbtest.ClientConn) error {
		err := p.update(t, b, leafConfig)
		b.ResolverError(errFinal)
		return err
	}},
	"another's configuration": {cause: func(_ *testing.T, _ *policyUnderTest, b balancer.Balancer, _ *lbtest.ClientConn) error {
		return b.UpdateClientConnState(balancer.ClientConnState{BalancerConfig: &lbtest.StubConfig{}})
	}},
	"the child fails its update": {needsChild: true, cause: func(t *testing.T, p *policyUnderTest, b balancer.Balancer, _ *lbtest.ClientConn) error {
		return p.update(t, b, `[{"e2e_final":{"id":"x"}}]`, "10.0.0.1:1")
	}},
	"the child fails its update, with two errors": {needsChild: true, cause: func(t *testing.T, p *policyUnderTest, b balancer.Balancer, _ *lbtest.ClientConn) error {
		err := p.update(t, b, `[{"e2e_final":{"id":"empty"}}]`, "10.0.0.1:1")
		if !errors.Is(err, balancer.ErrBadResolverState) {
			t.Errorf("%v does not wrap balancer.ErrBadResolverState", err)
		}
		return err
	}},
	"every subchannel fails": {cause: func(t *testing.T, p *policyUnderTest, b balancer.Balancer, cc *lbtest.ClientConn) error {
		err := p.update(t, b, leafConfig, "10.0.0.1:1", "10.0.0.2:1")
		for range 2 { // the second subchannel is created when the first one has failed
			for _, sc := range cc.SubConns() {
				sc.Report(connectivity.Connecting, nil)
				sc.Report(connectivity.TransientFailure, errFinal)
			}
		}
		return err
	}},
	"the server is not healthy": {needsHealth: true, cause: func(t *testing.T, p *policyUnderTest, b balancer.Balancer, cc *lbtest.ClientConn) error {
		err := p.update(t, b, leafConfig, "10.0.0.1:1")
		for _, sc := range cc.SubConns() {
			sc.Report(connectivity.Connecting, nil)
			sc.Report(connectivity.Ready, nil)
			sc.ReportHealth(connectivity.TransientFailure, errFinal)
		}
		return err
	}},
	"every subchannel is refused": {cause: func(t *testing.T, p *policyUnderTest, b balancer.Balancer, cc *lbtest.ClientConn) error {
		cc.ClientConn = refusingClientConn{}
		return p.update(t, b, leafConfig, "10.0.0.1:1")
	}},
}

// refusingClientConn is the inner ClientConn of a fakeChannel whose NewSubConn fails.
type refusingClientConn struct{ balancer.ClientConn }

// fakeChannel fails NewSubConn with errFinal if its inner ClientConn is a refusingClientConn.
type fakeChannel struct{ *lbtest.ClientConn }

func (c fakeChannel) NewSubConn(addresses []resolver.Address, opts balancer.NewSubConnOptions) (balancer.SubConn, error) {
	if _, isRefusing := c.ClientConn.ClientConn.(refusingClientConn); isRefusing {
		return nil, errFinal
	}
	return c.ClientConn.NewSubConn(addresses, opts)
}

func (p *policyUnderTest) update(t *testing.T, b balancer.Balancer, child string, addresses ...string) error {
	t.Helper()
	text := p.config
	if !p.leaf {
		text = fmt.Sprintf(p.config, child)
	}
	config, err := balancer.Get(p.name).(balancer.ConfigParser).ParseConfig([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var endpoints []resolver.Endpoint
	for _, a := range addresses {
		e := resolver.Endpoint{Addresses: []resolver.Address{{Addr: a}}}
		endpoints = append(endpoints, hierarchy.Set(e, p.path...))
	}
	return b.UpdateClientConnState(balancer.ClientConnState{ResolverState: resolver.State{Endpoints: endpoints}, BalancerConfig: config})
}

// errorsAfter returns the errors that a policy gives gRPC after a failure.
func (p *policyUnderTest) errorsAfter(t *testing.T, m failure) []error {
	cc := new(lbtest.ClientConn)
	b := balancer.Get(p.name).Build(fakeChannel{cc}, balancer.BuildOptions{})
	defer b.Close()
	var errs []error
	if err := m.cause(t, p, b, cc); err != nil {
		errs = append(errs, err)
	}
	time.Sleep(time.Minute)
	synctest.Wait()
	for _, s := range cc.States() {
		if _, err := s.Picker.Pick(balancer.PickInfo{Ctx: t.Context()}); err != nil && s.ConnectivityState == connectivity.TransientFailure {
			errs = append(errs, err)
		}
	}
	return errs
}
