package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthgrpc "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
)

// backendCommand is the hidden subcommand that runs one backend.
const backendCommand = "demo-backend"

type backendServer struct {
	address   string
	behaviour behaviour
}

func (b *backendServer) whoAmI(context.Context) (string, error) {
	if b.behaviour.failing.Load() {
		return "", status.Error(codes.Internal, "the demo told this backend to fail")
	}
	return b.address, nil
}

// RunBackend serves on a loopback address until stdin is closed, so that a backend never outlives
// its parent process. It prints its address as one line on stdout. Each line on stdin sets the
// backend's mode.
func RunBackend(address string, stdin io.Reader, stdout io.Writer) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	if !listener.Addr().(*net.TCPAddr).IP.IsLoopback() {
		listener.Close() //nolint:errcheck // the error is returned
		return fmt.Errorf("address %s: want one on loopback", address)
	}
	server := grpc.NewServer(grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{
		MinTime:             5 * time.Second,
		PermitWithoutStream: true,
	}))
	b := &backendServer{address: listener.Addr().String()}
	server.RegisterService(&serviceDesc, b)
	healthgrpc.RegisterHealthServer(server, health.NewServer())
	fmt.Fprintln(stdout, b.address)
	go func() {
		b.behaviour.readModes(stdin, stdout)
		server.Stop()
	}()
	return server.Serve(gatedListener{listener, &b.behaviour.gate})
}

type backend struct {
	address string
	command *exec.Cmd
	stdin   io.WriteCloser
	stdout  *bufio.Reader
	mode    mode
}

func startBackend(address string) (*backend, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program's own file: %w", err)
	}
	command := exec.Command(self, backendCommand, address)
	command.Stderr = os.Stderr
	stdin, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start a backend: %w", err)
	}
	b := &backend{command: command, stdin: stdin, stdout: bufio.NewReader(stdout), mode: serving}
	line, err := b.stdout.ReadString('\n')
	if err != nil {
		b.kill()
		return nil, fmt.Errorf("backend on %s did not come up: %w", address, err)
	}
	b.address = strings.TrimSpace(line)
	return b, nil
}

func (b *backend) kill() {
	if err := b.command.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		fmt.Fprintf(os.Stderr, "kill backend %s: %v\n", b.address, err)
	}
	b.stdin.Close()  //nolint:errcheck // nothing is pending
	b.command.Wait() //nolint:errcheck // the error only says that the process was killed
}
