package discovery_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/channel/join"
	"github.com/understudy-lb/understudy/internal/config/options"
	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
	"github.com/understudy-lb/understudy/internal/testing/flat"
	"github.com/understudy-lb/understudy/internal/testing/given"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
	"github.com/understudy-lb/understudy/internal/testing/settle"
	"github.com/understudy-lb/understudy/internal/testing/testlog"
)

var logged = testlog.Capture()

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type machines []machine

func (m machines) LookUp(context.Context, string) ([]machine, error) { return m, nil }

type backend struct {
	*grpc.Server
	name, address string
}

func startBackend(name string) *backend {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	b := &backend{grpc.NewServer(), name, listener.Addr().String()}
	healthpb.RegisterHealthServer(b.Server, health.NewServer())
	go b.Serve(listener)
	return b
}

func (b *backend) awaitCall(conn *grpc.ClientConn) string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		var from peer.Peer
		_, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{}, grpc.WaitForReady(true), grpc.Peer(&from))
		switch {
		case err == nil && from.Addr.String() == b.address:
			return b.name
		case ctx.Err() != nil:
			return fmt.Sprintf("nobody (%v)", err)
		}
	}
}

type channel struct {
	resolver.ClientConn
	mu         sync.Mutex
	lines      []string
	lastState  resolver.State
	parseCount int
	onUpdate   func(resolver.State)
}

func (c *channel) add(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = append(c.lines, fmt.Sprintf(format, args...))
}

func (c *channel) take() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := strings.Join(c.lines, "\n")
	c.lines = nil
	return s
}

func (c *channel) UpdateState(state resolver.State) error {
	if join.IsAwaiting(state) { // the source has not answered yet
		return nil
	}
	var endpoints []string
	for _, e := range state.Endpoints {
		name := e.Addresses[0].ServerName
		if name != "" {
			name = "/" + name
		}
		endpoints = append(endpoints, fmt.Sprintf("%s%s%q", e.Addresses[0].Addr, name, hierarchy.Path(e)))
	}
	c.add("state %s", strings.Join(endpoints, " "))
	c.lastState = state
	if c.onUpdate != nil {
		c.onUpdate(state)
	}
	return nil
}

func (c *channel) ReportError(err error) { c.add("error %v", err) }

type rawConfig struct {
	serviceconfig.Config
	json string
}

func (c *channel) ParseServiceConfig(json string) *serviceconfig.ParseResult {
	c.parseCount++
	return &serviceconfig.ParseResult{Config: rawConfig{json: json}}
}

func (c *channel) config() string {
	return lbtest.StateJSON(c.lastState, c.lastState.ServiceConfig.Config.(rawConfig).json)
}

// fakeSource is a source whose reports the test sends with the methods of Receiver.
type fakeSource struct {
	*discovery.Receiver
	raw        *discovery.Receiver
	onStart    func(*fakeSource)
	closeCount int
	closing    sync.Mutex // several channels may close a source
	startError string
}

func (s *fakeSource) close() {
	s.closing.Lock()
	defer s.closing.Unlock()
	s.closeCount++
}

func (*fakeSource) Check(bool) error { return nil }

func (s *fakeSource) Start(r *discovery.Receiver) (discovery.Started, error) {
	if s.startError != "" {
		return discovery.Started{Close: s.close}, errors.New(s.startError)
	}
	s.Receiver, s.raw = settle.Receiver(r), r
	if s.onStart != nil {
		s.onStart(s)
	}
	return discovery.Started{Close: s.close}, nil
}

func (s *fakeSource) sendAddresses(addresses ...string) error {
	var endpoints []flat.Endpoint
	for _, a := range addresses {
		endpoints = append(endpoints, flat.Endpoint{Address: a})
	}
	return s.Update(flat.Answer(endpoints...))
}

type fakeResolvingSource struct {
	fakeSource
	onResolveNow func()
}

func (*fakeResolvingSource) Check(bool) error { return nil }

func (r *fakeResolvingSource) Start(to *discovery.Receiver) (discovery.Started, error) {
	started, err := r.fakeSource.Start(to)
	started.ResolveNow = func() { r.onResolveNow() }
	return started, err
}

func target(text string) resolver.Target {
	u, err := url.Parse(text)
	if err != nil {
		panic(err)
	}
	return resolver.Target{URL: *u}
}

func newBuilder(mechanisms []discovery.Mechanism, opts ...given.Option) options.Builder {
	return given.NewBuilder("x", func(*discovery.Target) ([]discovery.Mechanism, error) { return mechanisms, nil }, opts...)
}

func newSourceBuilder(s discovery.Source, opts ...given.Option) options.Builder {
	return newBuilder([]discovery.Mechanism{{Source: s}}, opts...)
}

func build(t *testing.T, b options.Builder, cc resolver.ClientConn) resolver.Resolver {
	t.Helper()
	r, err := b.Build(target("x:///y"), cc, resolver.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	settle.Wait()
	return r
}

func (c *channel) failures() (text string) {
	for _, why := range stateattr.ChannelOf(hierarchy.Unseal(c.lastState)).Failures {
		text += why
	}
	return text
}
