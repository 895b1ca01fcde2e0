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

type asking struct {
	built  int
	parsed *serviceconfig.ParseResult
}

func (*asking) Scheme() string { return "asking" }

func (a *asking) Build(_ resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) (resolver.Resolver, error) {
	if a.parsed = cc.ParseServiceConfig("{}"); a.parsed.Err != nil {
		return nil, a.parsed.Err
	}
	a.built++
	_ = cc.UpdateState(resolver.State{Endpoints: []resolver.Endpoint{{Addresses: []resolver.Address{{Addr: fmt.Sprintf("10.0.0.%d:1", a.built)}}}}})
	return ended{}, nil
}

type ended struct{}

func (ended) ResolveNow(resolver.ResolveNowOptions) {}
func (ended) Close()                                {}

// splitting is a source that sends a list with one discovery mechanism: a gRPC resolver. When it is
// started again, it fails.
type splitting struct {
	target *discovery.Target
	by     resolver.Builder
	told   *bool
}

func (splitting) Check(bool) error { return nil }

func (s splitting) Start(r *discovery.Receiver) (discovery.Started, error) {
	if *s.told {
		r.Fail(errors.New("down"))
		return discovery.Started{}, nil
	}
	*s.told = true
	r.Parts([]discovery.Mechanism{{Name: "a", Source: discovery.FromResolver(s.by, target("asking:///a"), s.target.ClientConn, s.target.BuildOptions)}})
	return discovery.Started{}, nil
}

// When a channel closes, its list of discovery mechanisms is stored for the next channel. The gRPC
// resolvers in the list must not keep the closed channel in memory.
func TestResolversOfKeptPartsHoldNoClosedChannel(t *testing.T) {
	by, told := &asking{}, false
	b := given.NewBuilder("x", func(t *discovery.Target) ([]discovery.Mechanism, error) {
		return []discovery.Mechanism{{Source: splitting{t, by, &told}, Authority: "whole"}}, nil
	})
	const want = `state 10.0.0.%d:1["a" "/"]`
	gone := make(chan struct{})
	func() {
		cc := &channel{}
		r := build(t, b, cc)
		if got, want := cc.take(), fmt.Sprintf(want, 1); got != want {
			t.Errorf("channel saw\n%s\nwant\n%s", got, want)
		}
		if by.parsed.Config == nil {
			t.Errorf("a service config is parsed as %+v, want it from the channel", by.parsed)
		}
		r.Close()
		runtime.AddCleanup(cc, func(int) { close(gone) }, 0)
	}()
	by.parsed = nil
	awaitGone(t, gone)
	cc := &channel{}
	r := build(t, b, cc)
	defer r.Close()
	if got, want := cc.take(), fmt.Sprintf(want, 2); got != want {
		t.Errorf("the next channel saw\n%s\nwant\n%s", got, want)
	}
	if by.parsed == nil || by.parsed.Config != nil || by.parsed.Err != nil {
		t.Errorf("a service config is parsed as %+v, want nothing: its channel is closed", by.parsed)
	}
}

func awaitGone(t *testing.T, gone <-chan struct{}) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		runtime.GC()
		select {
		case <-gone:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
	t.Error("the closed channel is still in memory")
}
