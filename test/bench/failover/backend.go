package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthgrpc "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/understudy-lb/understudy"
)

const backendVerb = "backend"

var service = grpc.ServiceDesc{
	ServiceName: "bench.Tier",
	HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{{MethodName: "Name", Handler: func(tier any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		if err := decode(&emptypb.Empty{}); err != nil {
			return nil, err
		}
		return wrapperspb.String(tier.(string)), nil
	}}},
}

const methodName = "/bench.Tier/Name"

func callName(ctx context.Context, cc *grpc.ClientConn) (string, error) {
	var answer wrapperspb.StringValue
	err := cc.Invoke(ctx, methodName, &emptypb.Empty{}, &answer, grpc.WaitForReady(true))
	return answer.GetValue(), err
}

// serveTier serves on the same port of all IP addresses, and prints that port. It ends when stdin
// is closed. Port 0 picks any free port.
func serveTier(name, port string, ips []string) error {
	listeners, port, err := listen(port, ips)
	if err != nil {
		return err
	}
	for _, l := range listeners {
		server := grpc.NewServer(understudy.Recommended().ServerKeepalive())
		server.RegisterService(&service, name)
		healthgrpc.RegisterHealthServer(server, health.NewServer())
		go server.Serve(l) //nolint:errcheck // the server runs until the process ends
	}
	fmt.Println(port)
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func listen(port string, ips []string) (listeners []net.Listener, took string, err error) {
	for _, ip := range ips {
		l, err := net.Listen("tcp", net.JoinHostPort(ip, port))
		if err != nil {
			return nil, "", err
		}
		listeners = append(listeners, l)
		if _, port, err = net.SplitHostPort(l.Addr().String()); err != nil {
			return nil, "", err
		}
	}
	return listeners, port, nil
}

type tier struct {
	name    string
	ips     []string
	port    string
	command *exec.Cmd
	stdin   io.Closer
}

func startTier(name, port string, ips ...string) (*tier, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	t := &tier{name: name, ips: ips, command: exec.Command(self, append([]string{backendVerb, name, port}, ips...)...)}
	t.command.Stderr = os.Stderr
	if t.stdin, err = t.command.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := t.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := t.command.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.kill()
		return nil, fmt.Errorf("%s did not start: %w", name, err)
	}
	t.port = strings.TrimSpace(line)
	return t, nil
}

func (t *tier) addresses() []string {
	var all []string
	for _, ip := range t.ips {
		all = append(all, net.JoinHostPort(ip, t.port))
	}
	return all
}

func (t *tier) kill() {
	t.command.Process.Kill() //nolint:errcheck // the process may have ended already
	t.stdin.Close()          //nolint:errcheck // nothing was written
	t.command.Wait()         //nolint:errcheck // the error says that the process was killed
}
