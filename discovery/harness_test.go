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
	"github.com/understudy-lb/understudy/internal/awaiting"
	"github.com/understudy-lb/understudy/internal/hierarchy"
	"github.com/understudy-lb/understudy/internal/options"
	"github.com/understudy-lb/understudy/internal/stateattr"
	"github.com/understudy-lb/understudy/internal/testing/flat"
	"github.com/understudy-lb/understudy/internal/testing/given"
	"github.com/understudy-lb/understudy/internal/testing/settle"
	"github.com/understudy-lb/understudy/internal/testing/testlog"
)

var logged = testlog.Keep()

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

func (b *backend) caller(conn *grpc.ClientConn) string {
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
	mu       sync.Mutex
	lines    []string
	last     resolver.State
	parsed   int
	onUpdate func(resolver.State)
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
	if awaiting.Is(state) { // there is no answer yet, so calls wait
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
	c.last = state
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
	c.parsed++
	return &serviceconfig.ParseResult{Config: rawConfig{json: json}}
}

func (c *channel) config() string { return c.last.ServiceConfig.Config.(rawConfig).json }

// scripted is a source that sends reports when the test says so.
type scripted struct {
	*discovery.Receiver
	raw     *discovery.Receiver
	inStart func(*scripted)
	closed  int
	refuses string
}

func (*scripted) Check(bool) error { return nil }

func (s *scripted) Start(r *discovery.Receiver) (discovery.Started, error) {
	if s.refuses != "" {
		return discovery.Started{Close: func() { s.closed++ }}, errors.New(s.refuses)
	}
	s.Receiver, s.raw = settle.Receiver(r), r
	if s.inStart != nil {
		s.inStart(s)
	}
	return discovery.Started{Close: func() { s.closed++ }}, nil
}

func (s *scripted) say(addresses ...string) error {
	var endpoints []flat.Endpoint
	for _, a := range addresses {
		endpoints = append(endpoints, flat.Endpoint{Address: a})
	}
	return s.Update(flat.Answer(endpoints...))
}

type resolving struct {
	scripted
	onAsk func()
}

func (*resolving) Check(bool) error { return nil }

func (r *resolving) Start(to *discovery.Receiver) (discovery.Started, error) {
	started, err := r.scripted.Start(to)
	started.ResolveNow = func() { r.onAsk() }
	return started, err
}

func target(text string) resolver.Target {
	u, err := url.Parse(text)
	if err != nil {
		panic(err)
	}
	return resolver.Target{URL: *u}
}

func of(parts []discovery.Mechanism, opts ...given.Option) options.Builder {
	return given.NewBuilder("x", func(*discovery.Target) ([]discovery.Mechanism, error) { return parts, nil }, opts...)
}

func one(s discovery.Source, opts ...given.Option) options.Builder {
	return of([]discovery.Mechanism{{Source: s}}, opts...)
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

func (c *channel) failure() (text string) {
	for _, why := range stateattr.ChannelOf(hierarchy.Unseal(c.last)).Failures {
		text += why
	}
	return text
}
