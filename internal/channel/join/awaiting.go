package join

import (
	"errors"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/base"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/status"
)

const awaitingName = "understudy_awaiting"

// AwaitingConfig is the loadBalancingConfig we use until the first answer. Calls block, just as
// they would on a channel without a policy. But if a call's deadline expires, its error doesn't
// stop at "context deadline exceeded": it also says what the call was waiting for.
const AwaitingConfig = `[{"` + awaitingName + `":{}}]`

func init() { balancer.Register(awaitingBuilder{}) }

type awaitingKey struct{}

func setAwaiting(s resolver.State, text string) resolver.State {
	s.Attributes = s.Attributes.WithValue(awaitingKey{}, text)
	return s
}

func IsAwaiting(s resolver.State) bool {
	_, ok := s.Attributes.Value(awaitingKey{}).(string)
	return ok
}

type awaitingBuilder struct{}

func (awaitingBuilder) Name() string { return awaitingName }

func (awaitingBuilder) Build(cc balancer.ClientConn, _ balancer.BuildOptions) balancer.Balancer {
	return &awaitingPolicy{cc: cc, replaced: make(chan struct{})}
}

type awaitingPolicy struct {
	cc       balancer.ClientConn
	replaced chan struct{}
}

// Calls that are blocked in the old picker must get the new one before we release them.
func (p *awaitingPolicy) publish(state connectivity.State, picker balancer.Picker, replaced chan struct{}) {
	p.cc.UpdateState(balancer.State{ConnectivityState: state, Picker: picker})
	close(p.replaced)
	p.replaced = replaced
}

func (p *awaitingPolicy) UpdateClientConnState(s balancer.ClientConnState) error {
	text, _ := s.ResolverState.Attributes.Value(awaitingKey{}).(string)
	replaced := make(chan struct{})
	p.publish(connectivity.Connecting, waitingPicker{text, replaced}, replaced)
	return nil
}

// ResolverError fails all calls. We only get here once every source has failed.
func (p *awaitingPolicy) ResolverError(err error) {
	p.publish(connectivity.TransientFailure, base.NewErrPicker(errors.New(err.Error())), make(chan struct{}))
}

func (*awaitingPolicy) UpdateSubConnState(balancer.SubConn, balancer.SubConnState) {}

func (*awaitingPolicy) ExitIdle() {}

func (p *awaitingPolicy) Close() { close(p.replaced) }

// waitingPicker blocks until it's replaced or the call ends. Blocking is fine here since gRPC calls
// Pick on the goroutine of the call.
type waitingPicker struct {
	text string
	over <-chan struct{}
}

func (w waitingPicker) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	select {
	case <-w.over:
		return balancer.PickResult{}, balancer.ErrNoSubConnAvailable
	case <-info.Ctx.Done():
		err := info.Ctx.Err()
		return balancer.PickResult{}, status.Errorf(status.FromContextError(err).Code(), "%v while waiting for endpoints: %s", err, w.text)
	}
}
