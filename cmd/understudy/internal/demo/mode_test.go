package demo

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == backendCommand {
		if err := RunBackend(os.Args[2], os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// A new mode takes effect immediately, even for existing connections.
func TestBackendModes(t *testing.T) {
	t.Parallel()
	b, err := startBackend("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer b.kill()
	cc, err := grpc.NewClient(b.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer cc.Close()
	call := func(deadline time.Duration) (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		defer cancel()
		return callWhoAmI(ctx, cc)
	}
	for _, m := range []mode{serving, failing, serving, hung, failing, hung, serving} {
		if err := b.setMode(m); err != nil {
			t.Fatal(err)
		}
		deadline := time.Minute
		if m == hung {
			deadline = 300 * time.Millisecond
		}
		answer, err := call(deadline)
		want := map[mode]codes.Code{serving: codes.OK, failing: codes.Internal, hung: codes.DeadlineExceeded}[m]
		if status.Code(err) != want || err == nil && answer != b.address {
			t.Errorf("a %s backend answers %q, %v; want %v", m, answer, err, want)
		}
	}
	if err := b.setMode("asleep"); err == nil || !strings.Contains(err.Error(), `mode "asleep" given, want serving, failing or hung`) {
		t.Errorf("error = %v, want what there is", err)
	}
	b.kill()
	if err := b.setMode(failing); err == nil {
		t.Error("a dead backend took a mode")
	}
}

// A backend that hangs accepts connections but does not complete the handshake. It stops when its
// stdin is closed.
func TestHungBackendAcceptsNoCalls(t *testing.T) {
	t.Parallel()
	b, err := startBackend("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.setMode(hung); err != nil {
		t.Fatal(err)
	}
	cc, err := grpc.NewClient(b.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer cc.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := callWhoAmI(ctx, cc); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("error = %v, want that the deadline passed", err)
	}
	b.stdin.Close()
	if err := b.command.Wait(); err != nil {
		t.Errorf("the backend ended with %v", err)
	}
}
