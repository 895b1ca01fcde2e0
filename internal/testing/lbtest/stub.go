package lbtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/base"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"
)

// StubConfig is the configuration of a stub policy, `{"id": "a"}`: tests tell the
// children of a policy apart by it.
type StubConfig struct {
	serviceconfig.LoadBalancingConfig `json:"-"`
	ID                                string `json:"id"`
	// Reject makes ParseConfig fail.
	Reject bool `json:"reject,omitempty"`
}

// StubBuilder builds policies that do nothing by themselves and report on command.
// Register it under a name of the test's own with balancer.Register.
type StubBuilder struct {
	// PolicyName is the name it is registered under.
	PolicyName string
	// OnUpdate, where set, runs inside each stub's UpdateClientConnState, and its
	// error is returned from there.
	OnUpdate func(*Stub, balancer.ClientConnState) error

	mu    sync.Mutex
	built []*Stub
}

// Name returns PolicyName.
func (b *StubBuilder) Name() string { return b.PolicyName }

// ParseConfig parses a StubConfig.
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

// Build builds a stub and records it.
func (b *StubBuilder) Build(cc balancer.ClientConn, opts balancer.BuildOptions) balancer.Balancer {
	s := &Stub{CC: cc, Options: opts, builder: b}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.built = append(b.built, s)
	return s
}

// Built returns all stubs built so far, in order, the closed ones too.
func (b *StubBuilder) Built() []*Stub {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.built)
}

// Get returns the newest stub that is not closed and whose configuration has the
// id, or nil.
func (b *StubBuilder) Get(id string) *Stub {
	built := b.Built()
	for i := len(built) - 1; i >= 0; i-- {
		if s := built[i]; !s.IsClosed() && s.ID() == id {
			return s
		}
	}
	return nil
}

// Stub is a policy that reports on command. All methods are safe for concurrent
// use.
type Stub struct {
	// CC is the ClientConn that the policy was built with.
	CC balancer.ClientConn
	// Options are the options that the policy was built with.
	Options balancer.BuildOptions

	builder *StubBuilder

	mu        sync.Mutex
	updates   []balancer.ClientConnState
	errors    []error
	exitIdles int
	resets    int
	closed    int
}

// ID returns the id of the configuration it was last given, "" where it had none.
func (s *Stub) ID() string {
	if c, ok := s.Last().BalancerConfig.(*StubConfig); ok {
		return c.ID
	}
	return ""
}

// UpdateClientConnState records.
func (s *Stub) UpdateClientConnState(state balancer.ClientConnState) error {
	s.mu.Lock()
	s.updates = append(s.updates, state)
	s.mu.Unlock()
	if s.builder.OnUpdate != nil {
		return s.builder.OnUpdate(s, state)
	}
	return nil
}

// Updates returns how many updates it was given.
func (s *Stub) Updates() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.updates)
}

// Last returns the update it was last given.
func (s *Stub) Last() balancer.ClientConnState {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.updates) == 0 {
		return balancer.ClientConnState{}
	}
	return s.updates[len(s.updates)-1]
}

// Addresses returns the first address of each endpoint it was last given.
func (s *Stub) Addresses() []string {
	var addresses []string
	for _, e := range s.Last().ResolverState.Endpoints {
		addresses = append(addresses, e.Addresses[0].Addr)
	}
	return addresses
}

// ResolverError records.
func (s *Stub) ResolverError(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.errors = append(s.errors, err)
}

// ResolverErrors returns the resolver's errors that it was given.
func (s *Stub) ResolverErrors() []error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.errors)
}

// UpdateSubConnState does nothing.
func (s *Stub) UpdateSubConnState(balancer.SubConn, balancer.SubConnState) {}

// ExitIdle counts.
func (s *Stub) ExitIdle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.exitIdles++
}

// ExitIdles returns how often ExitIdle was called.
func (s *Stub) ExitIdles() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.exitIdles
}

// ResetBackoff counts.
func (s *Stub) ResetBackoff() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resets++
}

// Resets returns how often ResetBackoff was called.
func (s *Stub) Resets() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.resets
}

// Close counts.
func (s *Stub) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed++
}

// IsClosed returns whether Close was called.
func (s *Stub) IsClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed > 0
}

// Closes returns how often Close was called.
func (s *Stub) Closes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// Report reports a state with a picker that fails with err; where err is nil, with
// one that fails with ErrNoSubConnAvailable, and for READY with one whose error is
// the stub's id, so that tests can tell whose picker is in use.
func (s *Stub) Report(state connectivity.State, err error) {
	if err == nil {
		err = balancer.ErrNoSubConnAvailable
		if state == connectivity.Ready {
			err = PickedStub{s.ID()}
		}
	}
	s.CC.UpdateState(balancer.State{ConnectivityState: state, Picker: base.NewErrPicker(err)})
}

// ResolveNow asks for re-resolution.
func (s *Stub) ResolveNow() { s.CC.ResolveNow(resolver.ResolveNowOptions{}) }

// PickedStub is the error of the picker of a stub that is READY: it represents a
// pick, since a stub has no subchannels.
type PickedStub struct{ ID string }

// Error returns "picked" and the id.
func (p PickedStub) Error() string { return "picked " + p.ID }

// Pick returns what the picker of state answers: "a" if a stub with the id a was
// picked or a subchannel to address a, "queue" if the call is to wait, and "fail: …"
// otherwise.
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
