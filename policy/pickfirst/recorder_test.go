package pickfirst

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	core "github.com/understudy-lb/understudy/internal/core/pickfirst"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

type recorder struct {
	lbtest.ClientConn

	builder balancer.Builder
	policy  balancer.Balancer
	mark    func(resolver.State) resolver.State

	mu      sync.Mutex
	refused []string
	subs    map[string]*fakeSubConn
	log     []string
	calls   map[string]func(balancer.DoneInfo) // the calls in flight
}

func newRecorder(b balancer.Builder, mark func(resolver.State) resolver.State) *recorder {
	r := &recorder{builder: b, mark: mark, subs: map[string]*fakeSubConn{}, calls: map[string]func(balancer.DoneInfo){}}
	r.policy = b.Build(r, balancer.BuildOptions{})
	return r
}

func (r *recorder) write(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = append(r.log, fmt.Sprintf(format, args...))
}

type fakeSubConn struct {
	balancer.SubConn
	r                *recorder
	address          string
	listener, health func(balancer.SubConnState)
	state            core.State
	connectCalled    bool
}

func (s *fakeSubConn) Connect() {
	s.r.write("connect %s", s.address)
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	s.connectCalled = true
}

func (s *fakeSubConn) Shutdown() {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	if s.r.subs[s.address] != s { // this subchannel was created to replace another one, so it connects
		s.r.log[len(s.r.log)-1] = "renew " + s.address
		return
	}
	s.r.log = append(s.r.log, "shutdown "+s.address)
	delete(s.r.subs, s.address)
}

func (s *fakeSubConn) RegisterHealthListener(f func(balancer.SubConnState)) {
	s.r.write("watch %s", s.address)
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	s.health = f
}

func (r *recorder) NewSubConn(a []resolver.Address, opts balancer.NewSubConnOptions) (balancer.SubConn, error) {
	s := &fakeSubConn{r: r, address: a[0].Addr, listener: opts.StateListener}
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.Contains(r.refused, s.address) {
		return nil, errors.New("closing")
	}
	r.subs[s.address] = s
	return s, nil
}

func (r *recorder) refuse(addresses ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refused = addresses
}

func (r *recorder) ResolveNow(resolver.ResolveNowOptions) { r.write("resolve") }

func (r *recorder) UpdateState(s balancer.State) {
	r.ClientConn.UpdateState(s)
	text := s.ConnectivityState.String()
	if s.ConnectivityState != connectivity.Idle { // while IDLE, a pick would make the policy connect
		result, err := s.Picker.Pick(balancer.PickInfo{})
		switch {
		case err == balancer.ErrNoSubConnAvailable && s.ConnectivityState == connectivity.Connecting:
		case err != nil:
			text += fmt.Sprintf(": %v", err)
		default:
			text += " " + result.SubConn.(*fakeSubConn).address
			if result.Done != nil {
				result.Done(balancer.DoneInfo{}) // like grpc-go, if the subchannel is not READY anymore
			}
		}
	}
	r.write("publish %s", text)
}

func (r *recorder) Update(addresses []string, health bool) {
	s := endpoints(addresses...)
	if health {
		s = r.mark(s)
	}
	r.policy.UpdateClientConnState(balancer.ClientConnState{ResolverState: s})
}

func (r *recorder) ResolverError(err error) { r.policy.ResolverError(err) }
func (r *recorder) ExitIdle()               { r.policy.ExitIdle() }
func (r *recorder) ResetBackoff()           { r.policy.(*policy).ResetBackoff(0) }
func (r *recorder) Close()                  { r.policy.Close() }

var grpcStates = map[core.State]connectivity.State{
	core.Idle:             connectivity.Idle,
	core.Connecting:       connectivity.Connecting,
	core.Ready:            connectivity.Ready,
	core.TransientFailure: connectivity.TransientFailure,
}

func (r *recorder) sub(address string) *fakeSubConn {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.subs[address]
}

// Report reports a state of a subchannel. Like grpc-go, it drops the health listener before that.
func (r *recorder) Report(address string, s core.State, err error) {
	sub := r.sub(address)
	if sub == nil {
		return
	}
	r.mu.Lock()
	sub.health = nil
	sub.state, sub.connectCalled = s, sub.connectCalled && s != core.Connecting
	r.mu.Unlock()
	sub.listener(balancer.SubConnState{ConnectivityState: grpcStates[s], ConnectionError: err})
}

func (r *recorder) Health(address string, s core.State, err error) {
	sub := r.sub(address)
	if sub == nil {
		return
	}
	r.mu.Lock()
	health := sub.health
	r.mu.Unlock()
	if health != nil {
		health(balancer.SubConnState{ConnectivityState: grpcStates[s], ConnectionError: err})
	}
}

func (r *recorder) Call(name string) {
	result, err := r.State().Picker.Pick(balancer.PickInfo{})
	switch {
	case err != nil:
		r.write("not sent")
	case result.Done == nil:
		r.write("sent to %s", result.SubConn.(*fakeSubConn).address)
	default:
		r.write("sent to %s, and counted", result.SubConn.(*fakeSubConn).address)
		r.calls[name] = result.Done
	}
}

func (r *recorder) EndCall(name string, answered bool) {
	if done := r.calls[name]; done != nil {
		delete(r.calls, name)
		done(balancer.DoneInfo{BytesReceived: answered})
	}
}

func (r *recorder) Advance(d time.Duration) { <-time.After(d) }

func (r *recorder) Take() []string {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	log := r.log
	r.log = nil
	return log
}
