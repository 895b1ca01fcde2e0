// Package serve is a management server for xDS clients. It serves the endpoints of files and
// targets over Envoy's v3 aggregated discovery service, to package discovery/eds, to gRPC's xds:
// targets and, with RoundRobin, to Envoy.
//
// For each cluster, there are up to three resources of the same name: a listener with its routes,
// the cluster itself, and its endpoints. If the endpoints come from another server, we don't serve
// them.
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
	DefaultListen       = "127.0.0.1:18000"
	DefaultRemovalDelay = 10 * time.Second

	DefaultMaxConnectionAge = 30 * time.Minute

	DefaultMaxConnections = 2000
	DefaultMaxNames       = 5000

	// RoundRobin is a policy that all xDS clients support.
	RoundRobin = "round_robin"
)

type Options struct {
	// Paths are endpoints files and directories. In a directory, we read all files that end in
	// .yaml, .yml or .json, unless they're hidden. There must be at least one path or target.
	Paths []string
	// From lists targets to follow, each of which is served as one cluster. An entry is either
	// NAME=TARGET or just a target, in which case the cluster gets the name of the target's
	// authority. All of this project's targets are allowed, but policy parameters have no effect.
	From       []string
	Kubeconfig kubeconfig.Options
	// Listen is the address to serve, host:port. Use port 0 to get a free port (see Server.Addr).
	// The default is DefaultListen.
	Listen string
	// TLS has the files of the server's certificate, if there is one.
	TLS TLS
	// RemovalDelay is how long we keep serving a cluster after it has vanished from all files. If
	// it's 0, we remove it right away. The command's default is DefaultRemovalDelay.
	RemovalDelay time.Duration
	// MaxConnectionAge limits the age of a client's connection, give or take 10%. The client then
	// reconnects, maybe to a newer replica, and keeps its endpoints in the meantime. The minimum is
	// 1 s; 0 means no limit. The command's default is DefaultMaxConnectionAge.
	MaxConnectionAge time.Duration
	// Cache is a directory where we store the last valid form of each cluster, in case we're
	// restarted. There's no cache if it's empty.
	Cache string
	// Policy is the load balancing policy of all clusters. The default is weightedroundrobin.Name,
	// with RoundRobin as a fallback for clients that don't support it. RoundRobin is the only other
	// value.
	Policy string
	// Insecure allows an address outside loopback without TLS.
	Insecure bool
	// Metrics is the address for /metrics (in Prometheus' text format), /healthz and /readyz. It's
	// host:port, or just a port for loopback. If it's empty, they aren't served.
	Metrics string
	// MaxConnections limits the connections of all clients together, and MaxNames limits the names
	// of each type that a stream can request. They default to DefaultMaxConnections and
	// DefaultMaxNames.
	MaxConnections, MaxNames uint
	// Log gets lines about clients and files. It must not block, since we hold locks while logging.
	// By default, there's no log.
	Log *slog.Logger

	droppedLines    func() float64 // how many lines the log has dropped, may be nil
	responseTimeout time.Duration  // tests set this; 0 means the constant of the same name
}

// Server serves until its context ends or Stop is called.
type Server struct {
	listener        net.Listener
	metricsListener net.Listener // nil without metrics
	publisher       *publisher

	cancel context.CancelFunc
	done   chan struct{}
	err    error // why we've stopped, valid once done is closed
}

const stopTimeout = 5 * time.Second // how long streams get to end by themselves

// Start loads and serves all valid files, as well as cached clusters from invalid ones. It fails if
// it can't listen on the address, or if there's nothing to serve and none of the paths exists. When
// ctx ends, the server stops gracefully: streams end with the status OK.
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

// Failure is an error that has nothing to do with the arguments or the content of a file.
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

func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Reload makes the server read all files again, even those that haven't changed. Safe for
// concurrent use.
func (s *Server) Reload() {
	s.publisher.rereadAll.Store(true)
	s.publisher.wake()
}

// Stop stops the server and waits until it's done. You can call it more than once.
func (s *Server) Stop() {
	s.cancel()
	<-s.done
}

func (s *Server) run(ctx context.Context, o Options, creds credentials.TransportCredentials) {
	defer close(s.done)
	defer s.cancel()
	server := grpc.NewServer(append(serverOptions(&s.publisher.clients.largeRequests),
		grpc.Creds(creds),
		// gRPC clients don't ping more often than every 10 s, but a ping can arrive early.
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
	// ErrServerStopped isn't a failure. It only means that Stop was faster than Serve.
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
	// Clients that don't read, and those that watch the health, would keep their streams open
	// forever. We abort whatever is left after stopTimeout.
	timer := time.AfterFunc(stopTimeout, server.Stop)
	defer timer.Stop()
	server.GracefulStop()
}

func metricsHandler(p *publisher) http.Handler {
	// We're ready as soon as there's anything valid to serve.
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

// TLS has the PEM files of a server's certificate. They're read for every connection, so you can
// renew a certificate without a restart. While the files are invalid, we keep using the last valid
// ones.
type TLS struct {
	Certificate, Key string
	// ClientCA has the root certificates for client certificates. If it's set, clients must have
	// one (mTLS).
	ClientCA string
}

func (t TLS) reload(lastGood *tls.Config, log *slog.Logger) func(*tls.ClientHelloInfo) (*tls.Config, error) {
	// This reads the files for every connection, but only logs a problem once.
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

// loggingCredentials logs failed handshakes. Otherwise, only the client would, and we may not have
// access to its log.
type loggingCredentials struct {
	credentials.TransportCredentials
	log *slog.Logger
}

func (w loggingCredentials) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secure, info, err := w.TransportCredentials.ServerHandshake(conn)
	if err != nil && !errors.Is(err, io.EOF) { // EOF could just be a health probe of the port
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
