// Package e2e contains end-to-end tests of channels on real sockets. Backends that are stopped or
// killed run in separate processes.
package e2e

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthgrpc "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	_ "github.com/understudy-lb/understudy"
	"github.com/understudy-lb/understudy/internal/testing/given"
	"github.com/understudy-lb/understudy/internal/testing/testleak"
)

// roles has the programs that this test binary can run instead of its tests. The environment
// variable roleVariable selects one.
var roles = map[string]func() error{
	"backend": runBackendProcess,
}

const roleVariable = "UNDERSTUDY_E2E_ROLE"

func TestMain(m *testing.M) {
	if role := roles[os.Getenv(roleVariable)]; role != nil {
		if err := role(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	testleak.Main(m)
}

func startSelf(t *testing.T, role string, env ...string) (command *exec.Cmd, stdout *bufio.Reader) {
	t.Helper()
	command = exec.Command(os.Args[0])
	command.Env = append(append(os.Environ(), roleVariable+"="+role), env...)
	command.Stderr = os.Stderr
	stdin, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		command.Process.Kill()
		command.Wait()
	})
	return command, bufio.NewReader(out)
}

type server struct {
	name    string
	grpc    *grpc.Server
	health  *health.Server
	address string
	// failures is the number of further calls that fail with err.
	failures atomic.Int64
	err      error
	hangs    atomic.Bool   // calls hang until their deadline
	latency  time.Duration // set before the server starts
	watched  chan struct{}
}

const whoMethod = "/understudy.e2e.v1.E2E/Who"

func (s *server) who(ctx context.Context, _ any) (any, error) {
	if s.hangs.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if s.failures.Add(-1) >= 0 {
		return nil, s.err
	}
	select {
	case <-time.After(s.latency):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	md, _ := metadata.FromIncomingContext(ctx)
	return wrapperspb.String(s.name + " " + strings.Join(md[":authority"], ",")), nil
}

func newServer(name, address string, creds credentials.TransportCredentials) (*server, net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, nil, err
	}
	s := &server{name: name, health: health.NewServer(), address: listener.Addr().String(), watched: make(chan struct{}, 100)}
	s.grpc = grpc.NewServer(grpc.Creds(creds), grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{
		MinTime:             5 * time.Second, // same as with Options.ServerKeepalive
		PermitWithoutStream: true,
	}), grpc.StreamInterceptor(func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
		select {
		case s.watched <- struct{}{}:
		default:
		}
		return handle(srv, stream)
	}))
	healthgrpc.RegisterHealthServer(s.grpc, s.health)
	s.grpc.RegisterService(&grpc.ServiceDesc{
		ServiceName: "understudy.e2e.v1.E2E",
		HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{
			MethodName: "Who",
			Handler: func(srv any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
				if err := decode(&emptypb.Empty{}); err != nil {
					return nil, err
				}
				return srv.(*server).who(ctx, nil)
			},
		}},
	}, s)
	return s, listener, nil
}

func startServer(t *testing.T, name string, certificate *tls.Certificate) *server {
	t.Helper()
	return startServerOn(t, name, given.Address(t), certificate)
}

func startServerOn(t *testing.T, name, address string, certificate *tls.Certificate) *server {
	t.Helper()
	creds := insecure.NewCredentials()
	if certificate != nil {
		creds = credentials.NewServerTLSFromCert(certificate)
	}
	s, listener, err := newServer(name, address, creds)
	if err != nil {
		t.Fatal(err)
	}
	go s.grpc.Serve(listener)
	t.Cleanup(s.grpc.Stop)
	return s
}

const (
	nameVariable    = "UNDERSTUDY_E2E_NAME"
	addressVariable = "UNDERSTUDY_E2E_ADDRESS"
	latencyVariable = "UNDERSTUDY_E2E_TAKES"
)

// runBackendProcess prints the address of a backend and serves until stdin is closed.
func runBackendProcess() error {
	name := cmp.Or(os.Getenv(nameVariable), "near")
	address := cmp.Or(os.Getenv(addressVariable), "127.0.0.1:0")
	s, listener, err := newServer(name, address, insecure.NewCredentials())
	if err != nil {
		return err
	}
	if s.latency, err = time.ParseDuration(cmp.Or(os.Getenv(latencyVariable), "0s")); err != nil {
		return err
	}
	fmt.Println(s.address)
	go func() {
		io.Copy(io.Discard, os.Stdin)
		s.grpc.Stop()
	}()
	return s.grpc.Serve(listener)
}

type answer struct {
	name, authority string
	peer            string
}

func who(ctx context.Context, cc *grpc.ClientConn, opts ...grpc.CallOption) (answer, error) {
	var value wrapperspb.StringValue
	var p peer.Peer
	err := cc.Invoke(ctx, whoMethod, &emptypb.Empty{}, &value, append(opts, grpc.Peer(&p))...)
	peerAddress := ""
	if p.Addr != nil {
		peerAddress = p.Addr.String()
	}
	if err != nil {
		return answer{peer: peerAddress}, err
	}
	name, authority, _ := strings.Cut(value.GetValue(), " ")
	return answer{name, authority, peerAddress}, nil
}

func awaitName(ctx context.Context, t *testing.T, cc *grpc.ClientConn, name string) {
	t.Helper()
	for tick := time.Tick(pace / 5); ; <-tick {
		got, err := who(ctx, cc, grpc.WaitForReady(true))
		if ctx.Err() != nil {
			t.Fatalf("no answer from %s: last answer %+v, %v", name, got, err)
		}
		if err == nil && got.name == name {
			return
		}
	}
}
