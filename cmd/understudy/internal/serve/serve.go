// Package serve is a management server for xDS clients: it serves the endpoints in
// files, and those that targets lead to, by Envoy's v3 aggregated discovery service, to package discovery/eds, to
// gRPC's own xds: targets and, with RoundRobin, to Envoy.
//
// Each cluster becomes three resources of one name, or two where its endpoints come from
// elsewhere: a listener with its route configuration inside, a cluster, and the cluster's
// endpoints.
package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"

	"github.com/understudy-lb/understudy/cmd/understudy/internal/kubeconfig"
	"github.com/understudy-lb/understudy/internal/filewatch"
	"github.com/understudy-lb/understudy/weightedroundrobin"
)

const (
	// DefaultListen is the address that is served by default.
	DefaultListen = "127.0.0.1:18000"
	// DefaultRemovalDelay is how long the command serves a cluster whose file is gone.
	DefaultRemovalDelay = 10 * time.Second

	// DefaultMaxConnectionAge is how old the connection of a client of the command may become.
	DefaultMaxConnectionAge = 30 * time.Minute

	// RoundRobin is the policy that every xDS client has.
	RoundRobin = "round_robin"
)

// Options say what to serve, and to whom.
type Options struct {
	// Paths are files of endpoints, and directories of which every file with the
	// extension .yaml, .yml or .json is one, hidden files aside. At least one, or From.
	Paths []string
	// From are targets to follow, each NAME=TARGET, or a target that is served by its
	// authority. They are any of this project, with their parameters and parts; those about
	// policies have no effect.
	From []string
	// Kubeconfig says how to reach Kubernetes, where a target needs it.
	Kubeconfig kubeconfig.Options
	// Listen is the address to serve, host:port. Port 0 takes a free one; see
	// Server.Addr. Default: DefaultListen.
	Listen string
	// TLS are the files of the server's certificate, if any.
	TLS TLS
	// RemovalDelay is how long a cluster is served on that no file gives any more. 0
	// is not at all; the command's default is DefaultRemovalDelay.
	RemovalDelay time.Duration
	// MaxConnectionAge is how old the connection of a client may become, give or take a tenth. Then
	// the client connects again, perhaps to a replica that started later; nothing that it knows is
	// lost. 1 s and more; 0 is for no limit; the command's default is DefaultMaxConnectionAge.
	MaxConnectionAge time.Duration
	// Cache, if not empty, is a directory in which the last good form of each
	// cluster survives a restart.
	Cache string
	// Strict makes Start fail where a file is not good, or where there is none, and where a target
	// leads to nothing within 15 s.
	// Otherwise that is logged, and the rest is served.
	Strict bool
	// Policy is the load balancing policy that clusters name: the name of package
	// weightedroundrobin, the default, beside which they name RoundRobin for clients
	// that lack it; or RoundRobin alone.
	Policy string
	// Insecure allows an address that is not on loopback without TLS.
	Insecure bool
	// Metrics, if not empty, is the address at which metrics are served, in
	// Prometheus' text format, and /healthz and /readyz: host:port, or a port on
	// loopback.
	Metrics string
	// Limits bound what clients make the server hold.
	Limits Limits
	// Log takes lines about clients and files, under locks that requests wait for: it must
	// not wait. Default: nothing is logged.
	Log *slog.Logger

	dropped func() uint64 // how many lines of the log were; nil for none
}

// Server serves until its context ends or Stop is called.
type Server struct {
	listener  net.Listener
	metrics   *metricsServer
	publisher *publisher
	watcher   *filewatch.Watcher
	keys      *keyring // nil without TLS
	log       *slog.Logger

	cancel context.CancelFunc
	done   chan struct{}
	err    error // why it ended, once done is closed
}

// stopPatience is how long streams have to end by themselves.
const stopPatience = 5 * time.Second

// Start loads the files and serves them: those that are good, and what the cache holds
// of those that are not. It fails if there is nothing at any of the paths, or if the
// address cannot be served. When ctx ends the server stops gracefully: streams end
// with the status OK.
func Start(ctx context.Context, o Options) (*Server, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Listen == "" {
		o.Listen = DefaultListen
	}
	switch o.Policy {
	case "":
		o.Policy = weightedroundrobin.Name
	case weightedroundrobin.Name, RoundRobin:
	default:
		return nil, fmt.Errorf("policy %q: want %s or %s", o.Policy, weightedroundrobin.Name, RoundRobin)
	}
	if o.MaxConnectionAge != 0 && o.MaxConnectionAge < time.Second {
		return nil, fmt.Errorf("max connection age %v: want 1s or more, or 0 for no limit", o.MaxConnectionAge)
	}
	var err error
	if o.Limits, err = o.Limits.complete(); err != nil {
		return nil, err
	}
	creds, keys, err := o.credentials()
	if err != nil {
		return nil, err
	}
	s := &Server{log: o.Log, keys: keys, done: make(chan struct{})}
	s.watcher = filewatch.New(o.Paths...) // what changes from here on is noticed
	if err := s.open(ctx, o); err != nil {
		s.close()
		return nil, err
	}
	ctx, s.cancel = context.WithCancel(ctx)
	go s.run(ctx, o, creds)
	return s, nil
}

// open loads the files and listens.
func (s *Server) open(ctx context.Context, o Options) (err error) {
	if s.publisher, err = newPublisher(o); err != nil {
		return err
	}
	if s.metrics, err = newMetricsServer(ctx, o, s.publisher); err != nil {
		return err
	}
	if s.listener, err = listen(ctx, o.Listen); err == nil {
		s.listener = bounded{s.listener, make(chan struct{}, o.Limits.Connections), s.publisher.clients.refusedConnection}
	}
	return err
}

// Failure is an error that is no fault of the arguments or the files.
type Failure struct{ error }

// Unwrap returns the error.
func (f Failure) Unwrap() error { return f.error }

// listen listens at an address. A port that is in use, or that we may not use, is a Failure.
func listen(ctx context.Context, address string) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if _, refused := errors.AsType[*os.SyscallError](err); refused {
		return nil, Failure{err}
	}
	return listener, err
}

// close ends what was opened, but for the listener, which its server closes.
func (s *Server) close() {
	s.watcher.Close()
	s.metrics.close()
	if s.publisher != nil {
		s.publisher.follows.close()
	}
}

// Addr is the address that is served.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// MetricsAddr is the address at which metrics are served, nil if they are not.
func (s *Server) MetricsAddr() net.Addr {
	if s.metrics == nil {
		return nil
	}
	return s.metrics.listener.Addr()
}

// Reload looks at all files, changed or not. It may be called at any time.
func (s *Server) Reload() {
	s.publisher.ask()
	if s.keys != nil {
		s.keys.look()
	}
}

// Stop ends the server and returns when it has ended. It may be called twice.
func (s *Server) Stop() {
	s.cancel()
	<-s.done
}

// Wait returns when the server has ended: nil where it was stopped.
func (s *Server) Wait() error {
	<-s.done
	return s.err
}

func (s *Server) run(ctx context.Context, o Options, creds credentials.TransportCredentials) {
	defer close(s.done)
	defer s.cancel()
	server := grpc.NewServer(append(o.Limits.serverOptions(&s.publisher.clients.large),
		grpc.Creds(creds),
		// Clients that find out about dead servers by pings are welcome: those of
		// discovery/eds and gRPC's own ping every 5 minutes, or as often as they are
		// told, but for a second that a ping may come early.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 9 * time.Second, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 5 * time.Minute, MaxConnectionAge: o.MaxConnectionAge, MaxConnectionAgeGrace: stopPatience}),
		grpc.ChainStreamInterceptor(endWith(ctx, s.publisher.resources.gate)),
	)...)
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(server, &ads{clients: s.publisher.clients, gate: s.publisher.resources.gate})
	status := health.NewServer()
	status.SetServingStatus(discoveryv3.AggregatedDiscoveryService_ServiceDesc.ServiceName, healthpb.HealthCheckResponse_SERVING)
	healthpb.RegisterHealthServer(server, status)

	var background sync.WaitGroup
	background.Go(func() { s.publisher.run(ctx, s.watcher) })
	background.Go(func() {
		if err := s.metrics.run(); err != nil {
			s.log.Error("metrics are served no longer", "error", err.Error())
		}
	})
	background.Go(func() {
		<-ctx.Done()
		stop(server)
	})
	s.log.Info("serving", "address", s.Addr().String(), "security", creds.Info().SecurityProtocol)
	if s.metrics != nil {
		s.log.Info("metrics", "url", "http://"+s.MetricsAddr().String()+"/metrics")
	}
	// Where it was stopped before it began, Serve says so, which is no failure.
	if err := server.Serve(s.listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		s.err = Failure{fmt.Errorf("serve: %w", err)}
	}
	s.cancel()
	s.metrics.close()
	s.publisher.follows.close()
	background.Wait()
	s.watcher.Close()
	s.log.Info("stopped")
}

// stop lets streams end, which they do because their server's context has ended,
// and then breaks what is left: a connection on which a client never reads.
func stop(server *grpc.Server) {
	timer := time.AfterFunc(stopPatience, server.Stop)
	defer timer.Stop()
	server.GracefulStop()
}
