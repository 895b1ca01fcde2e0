//go:build torture

package torture

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthgrpc "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

func startBackend(t *testing.T) *backend {
	t.Helper()
	b := &backend{address: "127.0.0.1:0", mode: modeServe, conns: make(map[*net.TCPConn]bool)}
	b.callMode.Store(modeServe)
	b.newServer()
	if err := b.listen(); err != nil {
		t.Fatal(err)
	}
	b.address = b.listener.Addr().String()
	t.Cleanup(func() {
		b.listener.Close()
		b.server.Stop()
	})
	return b
}

// testTimeout is how long a test waits for an event that must happen. shortWait is how long it
// waits for an event that must not happen.
const (
	testTimeout = 30 * time.Second
	shortWait   = 300 * time.Millisecond
)

// dialRaw connects to a backend. It returns the connection and the first bytes from the backend, or
// the error.
func dialRaw(address string, wait time.Duration) (conn net.Conn, received string, err error) {
	conn, err = net.DialTimeout("tcp", address, wait)
	if err != nil {
		return nil, "", err
	}
	received, err = readSome(conn, wait)
	return conn, received, err
}

func readSome(conn net.Conn, wait time.Duration) (string, error) {
	buffer := make([]byte, 100)
	if err := conn.SetReadDeadline(time.Now().Add(wait)); err != nil {
		return "", err
	}
	n, err := conn.Read(buffer)
	return string(buffer[:n]), err
}

func TestConnectionModes(t *testing.T) {
	t.Parallel()
	silent, reset := os.ErrDeadlineExceeded, syscall.ECONNRESET
	for _, test := range []struct {
		mode     string
		opened   error  // error of a connection that was opened before the mode was set
		received string // prefix of what the backend sends on a new connection
		err      error  // error of a new connection
	}{
		{mode: modeServe, received: "\x00\x00", opened: silent},
		{mode: modeRefuse, err: syscall.ECONNREFUSED, opened: silent},
		{mode: modeSilent, err: silent, opened: reset},
		{mode: modeGarbage, received: "220 ", opened: reset},
		{mode: modeReset, received: "\x00\x00", opened: reset},
		{mode: modeCut, err: silent, opened: silent},
	} {
		if test.mode == modeCut && !canFilter() {
			t.Log("not tested: the system allows no filters of sockets")
			continue
		}
		t.Run(test.mode, func(t *testing.T) {
			b := startBackend(t)
			before, _, err := dialRaw(b.address, testTimeout)
			if err != nil {
				t.Fatal(err)
			}
			defer before.Close()
			if err := b.setMode(test.mode); err != nil {
				t.Fatal(err)
			}
			for err == nil { // skip what the server has already sent
				_, err = readSome(before, waitFor(test.opened))
			}
			if !matches(err, test.opened) {
				t.Errorf("a connection from before: %v, want %v", err, test.opened)
			}
			conn, received, err := dialRaw(b.address, waitFor(test.err))
			if conn != nil {
				defer conn.Close()
			}
			if !matches(err, test.err) || !strings.HasPrefix(received, test.received) {
				t.Errorf("a new connection says %q, %v; want %q, %v", received, err, test.received, test.err)
			}
			if err := b.setMode(modeServe); err != nil {
				t.Fatal(err)
			}
			if _, err := call(t, b); err != nil {
				t.Errorf("it does not serve again: %v", err)
			}
		})
	}
}

// matches reports whether err is want. Any timeout matches os.ErrDeadlineExceeded.
func matches(err, want error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return errors.Is(err, want) || errors.Is(want, os.ErrDeadlineExceeded) && ok && timeout.Timeout()
}

// waitFor returns how long to wait for err. If err is a timeout, this is a short time.
func waitFor(err error) time.Duration {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return shortWait
	}
	return testTimeout
}

func call(t *testing.T, b *backend) (healthgrpc.HealthCheckResponse_ServingStatus, error) {
	t.Helper()
	cc, err := grpc.NewClient(b.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer cc.Close()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	state, err := healthgrpc.NewHealthClient(cc).Check(ctx, &healthgrpc.HealthCheckRequest{}, grpc.WaitForReady(true))
	if err != nil {
		return 0, err
	}
	if hangs := b.callMode.Load() == modeHang; hangs {
		var end func()
		ctx, end = context.WithTimeout(ctx, shortWait)
		defer end()
	}
	var answer wrapperspb.StringValue
	return state.GetStatus(), cc.Invoke(ctx, unaryMethod, durationpb.New(0), &answer)
}
