package discovery_test

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

// configParser builds resolvers that parse a service config and then send one endpoint.
type configParser struct {
	built  int
	parsed *serviceconfig.ParseResult
}

func (*configParser) Scheme() string { return "asking" }

func (a *configParser) Build(_ resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) (resolver.Resolver, error) {
	if a.parsed = cc.ParseServiceConfig("{}"); a.parsed.Err != nil {
		return nil, a.parsed.Err
	}
	a.built++
	_ = cc.UpdateState(resolver.State{Endpoints: []resolver.Endpoint{{Addresses: []resolver.Address{{Addr: fmt.Sprintf("10.0.0.%d:1", a.built)}}}}})
	return noopResolver{}, nil
}

type noopResolver struct{}

func (noopResolver) ResolveNow(resolver.ResolveNowOptions) {}
func (noopResolver) Close()                                {}

// listOnce is a source that sends a list when it is started for the first time, and fails when it
// is started again. The list contains one mechanism, which wraps a gRPC resolver.
type listOnce struct {
	target  *discovery.Target
	builder resolver.Builder
	sent    *bool
}

func (listOnce) Check(bool) error { return nil }

func (s listOnce) Start(r *discovery.Receiver) (discovery.Started, error) {
	if *s.sent {
		r.Fail(errors.New("down"))
		return discovery.Started{}, nil
	}
	*s.sent = true
	r.Mechanisms([]discovery.Mechanism{{Name: "a", Source: discovery.FromResolver(s.builder, target("asking:///a"), s.target.ClientConn, s.target.BuildOptions)}})
	return discovery.Started{}, nil
}

// When a channel is closed, its list of discovery mechanisms is stored for the next channel. The
// gRPC resolvers in this list must not keep the closed channel in memory.
func TestStoredResolversDoNotRetainChannel(t *testing.T) {
	builder, sent := &configParser{}, false
	b := given.NewBuilder("x", func(t *discovery.Target) ([]discovery.Mechanism, error) {
		return []discovery.Mechanism{{Source: listOnce{t, builder, &sent}, Authority: "whole"}}, nil
	})
	const want = `state 10.0.0.%d:1["a" "/"]`
	collected := make(chan struct{})
	func() {
		cc := &channel{}
		r := build(t, b, cc)
		if got, want := cc.take(), fmt.Sprintf(want, 1); got != want {
			t.Errorf("channel saw\n%s\nwant\n%s", got, want)
		}
		if builder.parsed.Config == nil {
			t.Errorf("a service config is parsed as %+v, want it from the channel", builder.parsed)
		}
		r.Close()
		runtime.AddCleanup(cc, func(int) { close(collected) }, 0)
	}()
	builder.parsed = nil
	awaitCollected(t, collected)
	cc := &channel{}
	r := build(t, b, cc)
	defer r.Close()
	if got, want := cc.take(), fmt.Sprintf(want, 2); got != want {
		t.Errorf("the next channel saw\n%s\nwant\n%s", got, want)
	}
	if builder.parsed == nil || builder.parsed.Config != nil || builder.parsed.Err != nil {
		t.Errorf("a service config is parsed as %+v, want nothing: its channel is closed", builder.parsed)
	}
}

func awaitCollected(t *testing.T, collected <-chan struct{}) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		runtime.GC()
		select {
		case <-collected:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
	t.Error("the closed channel is still in memory")
}
