// Package serve is a management server for xDS clients. Over Envoy's v3 aggregated discovery
// service, it serves the endpoints of files and targets to package discovery/eds, to gRPC's xds:
// targets and, with RoundRobin, to Envoy.
//
// Each cluster becomes up to three resources of the same name: a listener that contains its routes,
// a cluster, and the cluster's endpoints. If the endpoints come from another server, they are not a
// resource here.
package serve

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"

	"github.com/understudy-lb/understudy/cmd/understudy/internal/kubeconfig"
	"github.com/understudy-lb/understudy/internal/net/xnet"
	"github.com/understudy-lb/understudy/policy/weightedroundrobin"
)

const (
	// DefaultListen is the default of Options.Listen.
	DefaultListen = "127.0.0.1:18000"
	// DefaultRemovalDelay is the command's default of Options.RemovalDelay.
	DefaultRemovalDelay = 10 * time.Second

	// DefaultMaxConnectionAge is the command's default of Options.MaxConnectionAge.
	DefaultMaxConnectionAge = 30 * time.Minute

	// DefaultMaxConnections is the default of Options.MaxConnections.
	DefaultMaxConnections = 2000
	// DefaultMaxNames is the default of Options.MaxNames.
	DefaultMaxNames = 5000

	// RoundRobin is a policy that every xDS client supports.
	RoundRobin = "round_robin"
)

// Options configure a server.
type Options struct {
	// Paths are endpoints files and directories. In a directory, the files with the extension
	// .yaml, .yml or .json are read, except hidden files. At least one path or target is required.
	Paths []string
	// From are targets to follow. Each target is served as one cluster. An entry is NAME=TARGET, or
	// a target alone, whose cluster is named after its authority. All targets of this project are
	// allowed. The parameters of policies have no effect.
	From       []string
	Kubeconfig kubeconfig.Options
	// Listen is the address to serve, host:port. Port 0 selects a free port (see Server.Addr). The
	// default is DefaultListen.
	Listen string
	// TLS names the files of the server's certificate, if any.
	TLS TLS
	// RemovalDelay is how long a cluster is still served after it has vanished from all files. If
	// it is 0, the cluster is removed at once. The command's default is DefaultRemovalDelay.
	RemovalDelay time.Duration
	// MaxConnectionAge limits the age of a client's connection, plus or minus a tenth. The client
	// then reconnects, perhaps to a newer replica, and keeps its endpoints in the meantime. The
	// minimum is 1 s; 0 means no limit. The command's default is DefaultMaxConnectionAge.
	MaxConnectionAge time.Duration
	// Cache is a directory that stores the last valid form of each cluster for use after a restart.
	// If it is empty, there is no cache.
	Cache string
	// Policy is the load balancing policy of all clusters. The default is weightedroundrobin.Name,
	// with RoundRobin as a fallback for clients that do not support it. The only other value is
	// RoundRobin.
	Policy string
	// Insecure allows an address outside loopback without TLS.
	Insecure bool
	// Metrics, if not empty, is the address that serves metrics in Prometheus' text format,
	// /healthz and /readyz. It is host:port, or only a port, which means loopback.
	Metrics string
	// MaxConnections and MaxNames limit the connections of all clients together, and the names of
	// each type that a stream requests. The defaults are DefaultMaxConnections and DefaultMaxNames.
	MaxConnections, MaxNames uint
	// Log receives lines about clients and files. It must not block, because requests wait for
	// locks that are held while lines are logged. The default is no log.
	Log *slog.Logger

	droppedLines    func() float64 // returns how many lines the log has dropped; may be nil
	responseTimeout time.Duration  // overrides the constant responseTimeout unless it is 0
}

// Server serves until its context ends or Stop is called.
type Server struct {
	listener        net.Listener
	metricsListener net.Listener // nil without metrics
	publisher       *publisher

	cancel context.CancelFunc
	done   chan struct{}
	err    error // why the server has ended; valid once done is closed
}

// stopTimeout is how long streams may take to end by themselves when we stop.
const stopTimeout = 5 * time.Second

// Start loads and serves the valid files, and the cached clusters of invalid files. It fails if
// none of the paths exists and nothing else can be served, or if it cannot listen on the address.
// When ctx ends, the server stops gracefully: streams end with the status OK.
func Start(ctx context.Context, o Options) (*Server, error) {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.Listen, o.Policy = cmp.Or(o.Listen, DefaultListen), cmp.Or(o.Policy, weightedroundrobin.Name)
	switch {
	case len(o.Paths)+len(o.From) == 0:
		return nil, errors.New("nothing to serve: want endpoints files, or directories of them, as in: understudy serve endpoints/; or --from NAME=TARGET")
	case o.Policy != weightedroundrobin.Name && o.Policy != RoundRobin:
		return nil, fmt.Errorf("policy %q: want %s or %s", o.Policy, weightedroundrobin.Name, RoundRobin)
	case o.MaxConnectionAge != 0 && o.MaxConnectionAge < time.Second:
		return nil, fmt.Errorf("max connection age %v: want 1s or more, or 0 for no limit", o.MaxConnectionAge)
	case o.RemovalDelay < 0:
		return nil, fmt.Errorf("removal delay %v: want 0 or more", o.RemovalDelay)
	}
	o.MaxConnections, o.MaxNames = cmp.Or(o.MaxConnections, DefaultMaxConnections), cmp.Or(o.MaxNames, DefaultMaxNames)
	if o.droppedLines == nil {
		o.droppedLines = func() float64 { return 0 }
	}
	creds, err := o.credentials()
	if err != nil {
		return nil, err
	}
	s := &Server{done: make(chan struct{})}
	if err := s.open(ctx, o); err != nil {
		s.close()
		return nil, err
	}
	ctx, s.cancel = context.WithCancel(ctx)
	go s.run(ctx, o, creds)
	return s, nil
}

func (s *Server) open(ctx context.Context, o Options) (err error) {
	if s.publisher, err = newPublisher(o); err != nil {
		return err
	}
	if o.Metrics != "" {
		address, err := metricsAddress(o.Metrics)
		if err != nil {
			return err
		}
		if s.metricsListener, err = listen(ctx, address); err != nil {
			return fmt.Errorf("metrics: %w", err)
		}
	}
	s.listener, err = listen(ctx, o.Listen)
	return err
}

// Failure is an error that neither an argument nor the content of a file caused.
type Failure struct{ error }

func (f Failure) Unwrap() error { return f.error }

func listen(ctx context.Context, address string) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if _, refused := errors.AsType[*os.SyscallError](err); refused {
		return nil, Failure{err}
	}
	return listener, err
}

func (s *Server) close() {
	if s.metricsListener != nil {
		_ = s.metricsListener.Close()
	}
	if s.publisher != nil {
		s.publisher.close()
	}
}

// Addr returns the address that is served.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Reload makes the server read all files again, even unchanged files. It is safe for concurrent
// use.
func (s *Server) Reload() {
	s.publisher.rereadAll.Store(true)
	s.publisher.wake()
}

// Stop stops the server and waits until it has stopped. It may be called more than once.
func (s *Server) Stop() {
	s.cancel()
	<-s.done
}

func (s *Server) run(ctx context.Context, o Options, creds credentials.TransportCredentials) {
	defer close(s.done)
	defer s.cancel()
	server := grpc.NewServer(append(serverOptions(&s.publisher.clients.largeRequests),
		grpc.Creds(creds),
		// gRPC clients ping every 10 s at most, but a ping may arrive early.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 9 * time.Second, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 5 * time.Minute, MaxConnectionAge: o.MaxConnectionAge, MaxConnectionAgeGrace: stopTimeout}),
	)...)
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(server, &ads{ctx: ctx, clients: s.publisher.clients, resources: s.publisher.resources, responseTimeout: cmp.Or(o.responseTimeout, responseTimeout)})
	status := health.NewServer()
	status.SetServingStatus(discoveryv3.AggregatedDiscoveryService_ServiceDesc.ServiceName, healthpb.HealthCheckResponse_SERVING)
	healthpb.RegisterHealthServer(server, status)

	var background sync.WaitGroup
	background.Go(func() { s.publisher.run(ctx) })
	background.Go(func() {
		<-ctx.Done()
		stop(server)
	})
	o.Log.Info("serving", "address", s.Addr().String(), "security", creds.Info().SecurityProtocol)
	metrics := http.Server{Handler: metricsHandler(s.publisher), ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelWarn)}
	if s.metricsListener != nil {
		background.Go(func() { _ = metrics.Serve(s.metricsListener) })
		o.Log.Info("metrics", "url", "http://"+s.metricsListener.Addr().String()+"/metrics")
	}
	// ErrServerStopped is no failure: Stop was quicker than Serve.
	if err := server.Serve(limitedListener{s.listener, s.publisher.clients, make(chan struct{}, min(o.MaxConnections, 1<<30))}); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		s.err = Failure{fmt.Errorf("serve: %w", err)}
	}
	s.cancel()
	_ = metrics.Close()
	background.Wait()
	s.close()
	o.Log.Info("stopped")
}

func stop(server *grpc.Server) {
	// Some streams do not end by themselves: those of clients that do not read, and those that
	// watch the health. After stopTimeout, we abort them.
	timer := time.AfterFunc(stopTimeout, server.Stop)
	defer timer.Stop()
	server.GracefulStop()
}

func metricsHandler(p *publisher) http.Handler {
	// We are ready as soon as we serve any valid content.
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(p.metrics.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !p.resources.current.Load().loaded {
			http.Error(w, "nothing valid has been loaded yet", http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "ok\n")
	})
	return mux
}

func metricsAddress(text string) (string, error) {
	if !strings.Contains(text, ":") {
		text = ":" + text
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return "", fmt.Errorf("metrics: %w, want host:port, or a port on loopback", err)
	}
	return net.JoinHostPort(cmp.Or(host, "127.0.0.1"), port), nil
}

// TLS names the PEM files of a server's certificate. They are read for each connection, so that a
// renewed certificate takes effect without a restart. While the files are invalid, their last valid
// content is used.
type TLS struct {
	Certificate, Key string
	// ClientCA, if not empty, holds the root certificates for client certificates, which are then
	// required (mTLS).
	ClientCA string
}

func (t TLS) reload(lastGood *tls.Config, log *slog.Logger) func(*tls.ClientHelloInfo) (*tls.Config, error) {
	// We read the files for each connection, and log each problem only once.
	var mu sync.Mutex
	var problem string
	return func(*tls.ClientHelloInfo) (*tls.Config, error) {
		mu.Lock()
		defer mu.Unlock()
		found, err := t.load()
		switch {
		case err == nil:
			lastGood, problem = found, ""
		case err.Error() != problem:
			problem = err.Error()
			log.Error("TLS files rejected, the last good ones are still used", "error", problem)
		}
		return lastGood, nil
	}
}

func (t TLS) load() (*tls.Config, error) {
	if t.Certificate == "" || t.Key == "" {
		return nil, errors.New("TLS needs both a certificate (--tls-cert) and its key (--tls-key)")
	}
	pair, err := tls.LoadX509KeyPair(t.Certificate, t.Key)
	if err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"}}
	if t.ClientCA == "" {
		return config, nil
	}
	roots, err := xnet.Roots(t.ClientCA)
	if err != nil {
		return nil, fmt.Errorf("client CA: %w", err)
	}
	config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, roots
	return config, nil
}

// loggingCredentials logs failed handshakes. Otherwise only the client would, and its log is not
// always ours to read.
type loggingCredentials struct {
	credentials.TransportCredentials
	log *slog.Logger
}

func (w loggingCredentials) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secure, info, err := w.TransportCredentials.ServerHandshake(conn)
	if err != nil && !errors.Is(err, io.EOF) { // EOF is, for example, a health probe of the port
		w.log.Warn("TLS handshake failed", "client", conn.RemoteAddr().String(), "error", err.Error())
	}
	return secure, info, err
}

func (o Options) credentials() (credentials.TransportCredentials, error) {
	if _, _, err := net.SplitHostPort(o.Listen); err != nil {
		return nil, fmt.Errorf("address %q: want host:port, as in %s", o.Listen, DefaultListen)
	}
	if o.TLS != (TLS{}) {
		config, err := o.TLS.load()
		if err != nil {
			return nil, err
		}
		return loggingCredentials{credentials.NewTLS(&tls.Config{GetConfigForClient: o.TLS.reload(config, o.Log)}), o.Log}, nil
	}
	if !o.Insecure && !xnet.IsLoopback(o.Listen) {
		return nil, fmt.Errorf("address %s is not on loopback, so anyone who reaches it could read every endpoint: want TLS (--tls-cert, --tls-key), or --insecure", o.Listen)
	}
	return insecure.NewCredentials(), nil
}
