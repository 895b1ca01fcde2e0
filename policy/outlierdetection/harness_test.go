package outlierdetection

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	core "github.com/understudy-lb/understudy/internal/core/outlierdetection"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
	"github.com/understudy-lb/understudy/internal/testing/outlierscenario"
)

// recordingPolicy is a child policy that connects to every endpoint and records health updates. It
// picks the endpoint that the context of the call names.
type recordingPolicy struct {
	cc balancer.ClientConn

	mu       sync.Mutex
	conns    map[string]balancer.SubConn
	received []string

	addresses []resolver.Address
}

type recordingBuilder struct {
	name  string
	built []*recordingPolicy
}

func (b *recordingBuilder) Name() string { return b.name }

func (b *recordingBuilder) Build(cc balancer.ClientConn, _ balancer.BuildOptions) balancer.Balancer {
	r := &recordingPolicy{cc: cc, conns: map[string]balancer.SubConn{}}
	b.built = append(b.built, r)
	return r
}

func (r *recordingPolicy) UpdateClientConnState(state balancer.ClientConnState) error {
	r.addresses = state.ResolverState.Addresses
	listed := map[string]bool{}
	for _, e := range state.ResolverState.Endpoints {
		listed[e.Addresses[0].Addr] = true
		r.connect(e.Addresses[0])
	}
	for name, conn := range r.conns {
		if !listed[name] {
			conn.Shutdown()
			delete(r.conns, name)
		}
	}
	r.cc.UpdateState(balancer.State{ConnectivityState: connectivity.Ready, Picker: r})
	return nil
}

func (r *recordingPolicy) connect(address resolver.Address) {
	if r.conns[address.Addr] != nil {
		return
	}
	var conn balancer.SubConn
	conn, err := r.cc.NewSubConn([]resolver.Address{address}, balancer.NewSubConnOptions{StateListener: func(state balancer.SubConnState) {
		if state.ConnectivityState == connectivity.Ready {
			first := true
			conn.RegisterHealthListener(func(health balancer.SubConnState) {
				if !first || health.ConnectivityState != connectivity.Ready {
					r.record(address.Addr + " " + health.ConnectivityState.String())
				}
				first = false
			})
		}
	}})
	if err == nil {
		r.conns[address.Addr] = conn
		conn.Connect()
	}
}

func (r *recordingPolicy) record(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.received = append(r.received, line)
}

type endpointKey struct{}

func (r *recordingPolicy) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	conn := r.conns[info.Ctx.Value(endpointKey{}).(string)]
	if conn == nil {
		return balancer.PickResult{}, errors.New("no such endpoint")
	}
	return balancer.PickResult{SubConn: conn}, nil
}

func (r *recordingPolicy) ResolverError(error)                                        {}
func (r *recordingPolicy) UpdateSubConnState(balancer.SubConn, balancer.SubConnState) {}
func (r *recordingPolicy) ExitIdle()                                                  { r.record("ExitIdle") }
func (r *recordingPolicy) Close()                                                     {}

type harness struct {
	t            *testing.T
	cc           *lbtest.ClientConn
	policy       balancer.Balancer
	builder      *recordingBuilder
	disconnected map[string]bool
	calls        map[string][]func(balancer.DoneInfo)
}

var recordings int

func newHarness(t *testing.T, random func() uint32) *harness {
	recordings++
	builder := &recordingBuilder{name: fmt.Sprintf("outlier_recording_%d", recordings)}
	balancer.Register(builder)
	cc := &lbtest.ClientConn{}
	h := &harness{t: t, cc: cc, builder: builder, disconnected: map[string]bool{}, calls: map[string][]func(balancer.DoneInfo){}, policy: spec(random).Builder("od").Build(cc, balancer.BuildOptions{})}
	t.Cleanup(h.policy.Close)
	return h
}

func endpointsOf(names ...string) []resolver.Endpoint {
	var all []resolver.Endpoint
	for _, name := range names {
		all = append(all, resolver.Endpoint{Addresses: []resolver.Address{{Addr: name}}})
	}
	return all
}

func configOf(config core.Config, child string) *lbconfig.OutlierDetection {
	c := lbconfig.New[lbconfig.OutlierDetection]()
	c.Interval, c.BaseEjectionTime, c.MaxEjectionTime = lbconfig.Duration(config.Interval), lbconfig.Duration(config.BaseEjectionTime), lbconfig.Duration(config.MaxEjectionTime)
	c.MaxEjectionPercent = config.MaxEjectionPercent
	c.SuccessRateEjection = (*lbconfig.SuccessRateEjection)(config.SuccessRateEjection)
	c.FailurePercentageEjection = (*lbconfig.FailurePercentageEjection)(config.FailurePercentageEjection)
	c.ConsecutiveFailuresEjection = (*lbconfig.ConsecutiveFailuresEjection)(config.ConsecutiveFailuresEjection)
	c.ChildPolicy = lbconfig.Policy{Builder: balancer.Get(child)}
	return c
}

func stateOf(config core.Config, endpoints []resolver.Endpoint) resolver.State {
	state := resolver.State{Endpoints: endpoints}
	if config.BelowOverflow {
		state = stateattr.SetBelowOverflow(state)
	}
	return state
}

func (h *harness) Update(config core.Config, endpoints []string) {
	h.t.Helper()
	err := h.policy.UpdateClientConnState(balancer.ClientConnState{
		BalancerConfig: configOf(config, h.builder.name),
		ResolverState:  stateOf(config, endpointsOf(endpoints...)),
	})
	if err != nil {
		h.t.Fatal(err)
	}
	synctest.Wait()
	for _, sc := range h.cc.LiveSubConns() {
		if sc.Connects() > 0 && !sc.HasHealthListener() && !h.disconnected[sc.Addresses[0].Addr] {
			h.ready(sc)
		}
	}
	synctest.Wait()
}

func (h *harness) ready(sc *lbtest.SubConn) {
	sc.Report(connectivity.Ready, nil)
	synctest.Wait()
	sc.ReportHealth(connectivity.Ready, nil)
	synctest.Wait()
}

func (h *harness) Connect(endpoint, how string) {
	sc := h.cc.SubConn(endpoint)
	h.disconnected[endpoint] = how != "connect"
	switch how {
	case "connect":
		h.ready(sc)
	case "disconnect":
		sc.Report(connectivity.Idle, nil)
	case "refuse":
		sc.Report(connectivity.Connecting, nil)
		sc.Report(connectivity.TransientFailure, errors.New("refused"))
	}
	synctest.Wait()
}

func (h *harness) Advance(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (h *harness) Take() []string {
	r := h.builder.built[0]
	r.mu.Lock()
	defer r.mu.Unlock()
	received := r.received
	r.received = nil
	return received
}

func (h *harness) wantReceived(want ...string) {
	h.t.Helper()
	if got := strings.Join(h.Take(), ", "); got != strings.Join(want, ", ") {
		h.t.Errorf("received %q, want %q", got, strings.Join(want, ", "))
	}
}

func inBubble(t *testing.T, f func(h *harness)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(newHarness(t, func() uint32 { return 0 })) })
}

var _ outlierscenario.Target = (*harness)(nil)
