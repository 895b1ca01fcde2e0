// Package serve is a management server for xDS clients: it serves the endpoints in
// files, by Envoy's v3 aggregated discovery service, to package discovery/eds, to
// gRPC's own xds: targets and, with RoundRobin, to Envoy.
//
// Each file becomes three resources of one name, that of its cluster: a listener
// with its route configuration inside, a cluster, and the cluster's endpoints.
package serve

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	serverv3 "github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/understudy-lb/understudy/internal/filewatch"
	"github.com/understudy-lb/understudy/weightedroundrobin"
)

const (
	// DefaultListen is the address that is served by default.
	DefaultListen = "127.0.0.1:18000"
	// DefaultRemovalDelay is how long the command serves a cluster whose file is gone.
	DefaultRemovalDelay = 10 * time.Second

	// RoundRobin is the policy that every xDS client has.
	RoundRobin = "round_robin"
)

// Options say what to serve, and to whom.
type Options struct {
	// Paths are files of endpoints, and directories of which every file with the
	// extension .yaml, .yml or .json is one, hidden files aside. At least one.
	Paths []string
	// Listen is the address to serve, host:port. Port 0 takes a free one; see
	// Server.Addr. Default: DefaultListen.
	Listen string
	// TLS are the files of the server's certificate, if any.
	TLS TLS
	// RemovalDelay is how long a cluster is served on that no file gives any more. 0
	// is not at all; the command's default is DefaultRemovalDelay.
	RemovalDelay time.Duration
	// Cache, if not empty, is a directory in which the last good form of each
	// cluster survives a restart.
	Cache string
	// Strict makes Start fail where a file is not good, or where there is none.
	// Otherwise that is logged, and the rest is served.
	Strict bool
	// Policy is the load balancing policy that clusters name: the name of package
	// weightedroundrobin, the default, beside which they name RoundRobin for clients
	// that lack it; or RoundRobin alone.
	Policy string
	// Insecure allows an address that is not on loopback without TLS.
	Insecure bool
	// Log is told about clients and files. Default: nothing is logged.
	Log *slog.Logger
}

// Server serves until its context ends or Stop is called.
type Server struct {
	addr   net.Addr
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
	creds, err := o.credentials()
	if err != nil {
		return nil, err
	}
	watcher := filewatch.New(o.Paths...) // what changes from here on is noticed
	publisher, err := newPublisher(o)
	if err != nil {
		watcher.Close()
		return nil, err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", o.Listen)
	if err != nil {
		watcher.Close()
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	s := &Server{addr: listener.Addr(), cancel: cancel, done: make(chan struct{})}
	go s.run(ctx, listener, creds, publisher, watcher)
	return s, nil
}

// Addr is the address that is served.
func (s *Server) Addr() net.Addr { return s.addr }

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

func (s *Server) run(ctx context.Context, listener net.Listener, creds credentials.TransportCredentials, p *publisher, w *filewatch.Watcher) {
	log := p.log
	defer close(s.done)
	defer s.cancel()
	server := grpc.NewServer(
		grpc.Creds(creds),
		// Clients that find out about dead servers by pings, as discovery/eds and
		// gRPC's own do every 5 minutes, are welcome.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Minute, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 5 * time.Minute}),
	)
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(server, serverv3.NewServer(ctx, p.resources.cache(), newClients(log).callbacks()))

	var background sync.WaitGroup
	background.Go(func() {
		defer w.Close()
		p.run(ctx, w)
	})
	background.Go(func() {
		<-ctx.Done()
		stop(server)
	})
	log.Info("serving", "address", listener.Addr().String(), "security", creds.Info().SecurityProtocol)
	if err := server.Serve(listener); err != nil {
		s.err = fmt.Errorf("serve: %w", err)
	}
	s.cancel()
	background.Wait()
	log.Info("stopped")
}

// stop lets streams end, which they do because their server's context has ended,
// and then breaks what is left: a connection on which a client never reads.
func stop(server *grpc.Server) {
	timer := time.AfterFunc(stopPatience, server.Stop)
	defer timer.Stop()
	server.GracefulStop()
}

// credentials returns those that Options ask for.
func (o Options) credentials() (credentials.TransportCredentials, error) {
	if o.TLS != (TLS{}) {
		config, err := o.TLS.config()
		if err != nil {
			return nil, err
		}
		return credentials.NewTLS(config), nil
	}
	if !o.Insecure && !isLoopback(o.Listen) {
		return nil, fmt.Errorf("address %s is not on loopback, and whoever reaches it would read every endpoint: want TLS (--tls-cert, --tls-key), or --insecure", o.Listen)
	}
	return insecure.NewCredentials(), nil
}

func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
