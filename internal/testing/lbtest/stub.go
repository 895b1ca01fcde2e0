package lbtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/base"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"
)

// StubConfig is the configuration of a stub policy, e.g. `{"id": "a"}`. The id tells the children
// of a policy apart.
type StubConfig struct {
	serviceconfig.LoadBalancingConfig `json:"-"`
	ID                                string `json:"id"`
	Reject                            bool   `json:"reject,omitempty"`
}

// StubBuilder builds stub policies. Register it with balancer.Register under a unique name.
type StubBuilder struct {
	PolicyName string
	// OnUpdate is called by every stub's UpdateClientConnState, which returns its result. It may be
	// nil.
	OnUpdate   func(*Stub, balancer.ClientConnState) error
	OnExitIdle func(*Stub)

	mu    sync.Mutex
	built []*Stub
}

func (b *StubBuilder) Name() string { return b.PolicyName }

func (b *StubBuilder) ParseConfig(raw json.RawMessage) (serviceconfig.LoadBalancingConfig, error) {
	var c StubConfig
	if err := json.Unmarshal(raw, &c); err != nil {
		return nil, err
	}
	if c.Reject {
		return nil, fmt.Errorf("stub %q rejects its configuration", c.ID)
	}
	return &c, nil
}

func (b *StubBuilder) Build(cc balancer.ClientConn, opts balancer.BuildOptions) balancer.Balancer {
	s := &Stub{CC: cc, Options: opts, builder: b}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.built = append(b.built, s)
	return s
}

func (b *StubBuilder) Built() []*Stub {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.built)
}

func (b *StubBuilder) Get(id string) *Stub {
	built := b.Built()
	for i := len(built) - 1; i >= 0; i-- {
		if s := built[i]; !s.IsClosed() && s.ID() == id {
			return s
		}
	}
	return nil
}

// Stub is a policy that doesn't report anything until a test calls Report. Its methods may be
// called concurrently.
type Stub struct {
	CC      balancer.ClientConn
	Options balancer.BuildOptions

	builder *StubBuilder

	mu        sync.Mutex
	updates   []balancer.ClientConnState
	errors    []error
	exitIdles int
	resets    int
	closed    int
}

func (s *Stub) ID() string {
	if c, ok := s.LastUpdate().BalancerConfig.(*StubConfig); ok {
		return c.ID
	}
	return ""
}

func (s *Stub) UpdateClientConnState(state balancer.ClientConnState) error {
	s.mu.Lock()
	s.updates = append(s.updates, state)
	s.mu.Unlock()
	if s.builder.OnUpdate != nil {
		return s.builder.OnUpdate(s, state)
	}
	return nil
}

func (s *Stub) Updates() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.updates)
}

func (s *Stub) LastUpdate() balancer.ClientConnState {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.updates) == 0 {
		return balancer.ClientConnState{}
	}
	return s.updates[len(s.updates)-1]
}

func (s *Stub) Addresses() []string {
	var addresses []string
	for _, e := range s.LastUpdate().ResolverState.Endpoints {
		addresses = append(addresses, e.Addresses[0].Addr)
	}
	return addresses
}

func (s *Stub) ResolverError(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.errors = append(s.errors, err)
}

func (s *Stub) ResolverErrors() []error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.errors)
}

func (s *Stub) UpdateSubConnState(balancer.SubConn, balancer.SubConnState) {}

func (s *Stub) ExitIdle() {
	if s.builder.OnExitIdle != nil {
		s.builder.OnExitIdle(s)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.exitIdles++
}

func (s *Stub) ExitIdles() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.exitIdles
}

func (s *Stub) ResetBackoff(time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resets++
}

func (s *Stub) Resets() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.resets
}

func (s *Stub) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed++
}

func (s *Stub) IsClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed > 0
}

func (s *Stub) Closes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// Report reports a state. If err is set, picks fail with it. Otherwise picks fail with a PickedStub
// if the stub is READY, and queue the call if it isn't.
func (s *Stub) Report(state connectivity.State, err error) {
	if err == nil {
		err = balancer.ErrNoSubConnAvailable
		if state == connectivity.Ready {
			err = PickedStub{s.ID()}
		}
	}
	s.CC.UpdateState(balancer.State{ConnectivityState: state, Picker: base.NewErrPicker(err)})
}

func (s *Stub) ResolveNow() { s.CC.ResolveNow(resolver.ResolveNowOptions{}) }

// PickedStub is the error of a READY stub's picker. Since a stub has no subchannels, that's how we
// represent a successful pick.
type PickedStub struct{ ID string }

func (p PickedStub) Error() string { return "picked " + p.ID }

// Pick picks once and describes the result: the stub's id or the subchannel's address, "queue" if
// the call must wait, or "fail: " and the error.
func Pick(state balancer.State) string {
	if state.Picker == nil {
		return "no picker"
	}
	result, err := state.Picker.Pick(balancer.PickInfo{})
	var stub PickedStub
	switch {
	case err == nil:
		return result.SubConn.(*SubConn).Addresses[0].Addr
	case errors.As(err, &stub):
		return stub.ID
	case errors.Is(err, balancer.ErrNoSubConnAvailable):
		return "queue"
	}
	return "fail: " + err.Error()
}
