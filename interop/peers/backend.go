package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthgrpc "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/understudy-lb/understudy/internal/testing/testproxy"
)

// backendVerb is the command line argument that makes this program run a tier of backends.
const backendVerb = "backend"

// backends is the service that the backends of a tier provide.
type backends struct {
	name    string
	failing atomic.Bool
}

var service = grpc.ServiceDesc{
	ServiceName: "peers.Tier",
	HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{{MethodName: "Name", Handler: func(srv any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		if err := decode(&emptypb.Empty{}); err != nil {
			return nil, err
		}
		b := srv.(*backends)
		if b.failing.Load() {
			return nil, status.Error(codes.Internal, "told to fail")
		}
		return wrapperspb.String(b.name), nil
	}}},
}

const methodName = "/peers.Tier/Name"

// callName makes a call and returns the name of the tier that handled it.
func callName(ctx context.Context, cc grpc.ClientConnInterface, wait bool) (string, error) {
	var answer wrapperspb.StringValue
	err := cc.Invoke(ctx, methodName, &emptypb.Empty{}, &answer, grpc.WaitForReady(wait))
	return answer.GetValue(), err
}

// serveTier serves on two ports, which it prints, until stdin is closed. Once it has read a line
// from stdin, all calls fail.
func serveTier(name string) error {
	b := &backends{name: name}
	for range 2 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		server := grpc.NewServer(grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: keepaliveTime / 2, PermitWithoutStream: true}))
		server.RegisterService(&service, b)
		healthgrpc.RegisterHealthServer(server, health.NewServer())
		go server.Serve(l) //nolint:errcheck // the server ends with the process
		fmt.Println(l.Addr())
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		b.failing.Store(true)
		fmt.Println(lines.Text())
	}
	return lines.Err()
}

// tier is a backend process that serves on two ports.
type tier struct {
	name      string
	addresses []string
	relays    []*testproxy.Relay
	command   *exec.Cmd
	stdin     *os.File
	stdout    *bufio.Reader
}

// startTier starts a process of this program as a tier, and returns once it listens.
func startTier(name string, relayed bool) (*tier, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	t := &tier{name: name, command: exec.Command(self, backendVerb, name)}
	t.command.Stderr = os.Stderr
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	t.command.Stdin, t.stdin = read, write
	stdout, err := t.command.StdoutPipe()
	if err == nil {
		err = t.command.Start()
	}
	read.Close() //nolint:errcheck // the process has its own copy
	if err != nil {
		return nil, err
	}
	t.stdout = bufio.NewReader(stdout)
	for range 2 {
		line, err := t.stdout.ReadString('\n')
		if err != nil {
			t.close()
			return nil, fmt.Errorf("%s did not start: %w", name, err)
		}
		address := strings.TrimSpace(line)
		if relayed {
			r, err := testproxy.NewRelay(address)
			if err != nil {
				t.close()
				return nil, err
			}
			t.relays, address = append(t.relays, r), r.Address
		}
		t.addresses = append(t.addresses, address)
	}
	return t, nil
}

// kill kills the process, and waits for its end.
func (t *tier) kill() error {
	t.command.Process.Kill() //nolint:errcheck // the process may have ended already
	t.command.Wait()         //nolint:errcheck // the error says only that the process was killed
	return nil
}

// hang stops the process: the kernel still accepts connections, but the process does not read.
func (t *tier) hang() error { return t.command.Process.Signal(syscall.SIGSTOP) }

// cut drops all packets to and from the tier.
func (t *tier) cut() error {
	for _, r := range t.relays {
		r.Cut()
	}
	return nil
}

// fail makes all calls to the tier fail.
func (t *tier) fail() error {
	if _, err := fmt.Fprintln(t.stdin, "fail"); err != nil {
		return err
	}
	_, err := t.stdout.ReadString('\n')
	return err
}

func (t *tier) close() {
	t.kill()        //nolint:errcheck // kill always returns nil
	t.stdin.Close() //nolint:errcheck // no data can be lost
	for _, r := range t.relays {
		r.Close()
	}
}
