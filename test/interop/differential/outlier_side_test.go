package differential

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/status"

	"github.com/understudy-lb/understudy/internal/testing/lbtest"
	"github.com/understudy-lb/understudy/policy/outlierdetection"
)

const (
	ourOutlierDetection   = outlierdetection.Name
	theirOutlierDetection = "outlier_detection_experimental"
)

// outlierSide is one of the two policies. Its child policy connects to every endpoint, and
// registers a health listener for it. The context of a call contains the endpoint to pick.
type outlierSide struct {
	t      *testing.T
	cc     *lbtest.ClientConn
	policy balancer.Balancer
	child  *listeningChild
}

// listeningBuilder builds the child policy of an outlierSide. last is the newest child policy.
type listeningBuilder struct{ last *listeningChild }

var listeners = &listeningBuilder{}

func init() { balancer.Register(listeners) }

func (*listeningBuilder) Name() string { return "differential_listening" }

func (l *listeningBuilder) Build(cc balancer.ClientConn, _ balancer.BuildOptions) balancer.Balancer {
	l.last = &listeningChild{cc: cc, conns: map[string]balancer.SubConn{}, health: map[string]connectivity.State{}}
	return l.last
}

type listeningChild struct {
	cc    balancer.ClientConn
	conns map[string]balancer.SubConn

	mu     sync.Mutex
	health map[string]connectivity.State
}

func (c *listeningChild) UpdateClientConnState(state balancer.ClientConnState) error {
	addresses := map[string]bool{}
	for _, e := range state.ResolverState.Endpoints {
		address := e.Addresses[0]
		if addresses[address.Addr] = true; c.conns[address.Addr] != nil {
			continue
		}
		var conn balancer.SubConn
		conn, err := c.cc.NewSubConn([]resolver.Address{address}, balancer.NewSubConnOptions{StateListener: func(state balancer.SubConnState) {
			if state.ConnectivityState == connectivity.Ready {
				conn.RegisterHealthListener(func(health balancer.SubConnState) {
					c.mu.Lock()
					defer c.mu.Unlock()
					c.health[address.Addr] = health.ConnectivityState
				})
			}
		}})
		if err != nil {
			return err
		}
		c.conns[address.Addr] = conn
		conn.Connect()
	}
	for name, conn := range c.conns {
		if !addresses[name] {
			conn.Shutdown()
			delete(c.conns, name)
			c.mu.Lock()
			delete(c.health, name)
			c.mu.Unlock()
		}
	}
	c.cc.UpdateState(balancer.State{ConnectivityState: connectivity.Ready, Picker: c})
	return nil
}

type endpointKey struct{}

func (c *listeningChild) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	return balancer.PickResult{SubConn: c.conns[info.Ctx.Value(endpointKey{}).(string)]}, nil
}

func (*listeningChild) ResolverError(error)                                        {}
func (*listeningChild) UpdateSubConnState(balancer.SubConn, balancer.SubConnState) {}
func (*listeningChild) ExitIdle()                                                  {}
func (*listeningChild) Close()                                                     {}

func newOutlierSide(t *testing.T, policy string) *outlierSide {
	cc := &lbtest.ClientConn{}
	return &outlierSide{t: t, cc: cc, policy: balancer.Get(policy).Build(cc, balancer.BuildOptions{})}
}

// update sends endpoints and a configuration to the policy. Both policies parse the JSON of gRFC
// A50.
func (s *outlierSide) update(name, config string, endpoints []string) {
	s.t.Helper()
	parsed, err := balancer.Get(name).(balancer.ConfigParser).ParseConfig(
		fmt.Appendf(nil, `{%s "childPolicy": [{"differential_listening": {}}]}`, config))
	if err != nil {
		s.t.Fatal(err)
	}
	var list []resolver.Endpoint
	for _, e := range endpoints {
		list = append(list, resolver.Endpoint{Addresses: []resolver.Address{{Addr: e}}})
	}
	if err := s.policy.UpdateClientConnState(balancer.ClientConnState{BalancerConfig: parsed, ResolverState: resolver.State{Endpoints: list}}); err != nil {
		s.t.Fatal(err)
	}
	if s.child == nil {
		s.child = listeners.last
	}
	synctest.Wait()
	for _, sc := range s.cc.LiveSubConns() {
		if !sc.HasHealthListener() {
			sc.Report(connectivity.Ready, nil)
			synctest.Wait()
			sc.ReportHealth(connectivity.Ready, nil)
			synctest.Wait()
		}
	}
}

func (s *outlierSide) calls(endpoint string, ok, failed int) {
	for i := range ok + failed {
		result, err := s.cc.State().Picker.Pick(balancer.PickInfo{Ctx: context.WithValue(context.Background(), endpointKey{}, endpoint)})
		if err != nil {
			s.t.Fatal(err)
		}
		info := balancer.DoneInfo{BytesSent: true, BytesReceived: true}
		if i >= ok {
			info.Err = status.Error(codes.Unavailable, "down")
		}
		if result.Done != nil {
			result.Done(info)
		}
	}
	synctest.Wait()
}

func (s *outlierSide) ejected() string {
	s.child.mu.Lock()
	defer s.child.mu.Unlock()
	var all []string
	for name, state := range s.child.health {
		if state != connectivity.Ready {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func (s *outlierSide) isEjected(name string) bool {
	return slices.Contains(strings.Fields(s.ejected()), name)
}
