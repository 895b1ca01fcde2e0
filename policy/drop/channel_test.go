package drop

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"

	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

func dial(t *testing.T, stub *lbtest.StubBuilder) *grpc.ClientConn {
	t.Helper()
	balancer.Register(stub)
	r := manual.NewBuilderWithScheme("drop")
	r.InitialState(resolver.State{Endpoints: []resolver.Endpoint{{Addresses: []resolver.Address{{Addr: "127.0.0.1:1"}}}}})
	config := fmt.Sprintf(`{"loadBalancingConfig": [{%q: {"dropCategories": [{"category": "shed", "requestsPerMillion": 1000000}], "childPolicy": [{%q: {"id": "child"}}]}}]}`, Name, stub.PolicyName)
	cc, err := grpc.NewClient("drop:///", grpc.WithResolvers(r), grpc.WithDefaultServiceConfig(config),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cc.Close() })
	cc.Connect()
	return cc
}

func await(ctx context.Context, t *testing.T, cc *grpc.ClientConn, want connectivity.State) {
	t.Helper()
	for state := cc.GetState(); state != want; state = cc.GetState() {
		if !cc.WaitForStateChange(ctx, state) {
			t.Fatalf("the channel is %v, want %v", state, want)
		}
	}
}

// A wait-for-ready call fails at once if the policy drops it. Otherwise, it waits for the endpoint.
func TestWaitForReady(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	call := func(cc *grpc.ClientConn, within time.Duration) error {
		callCtx, stop := context.WithTimeout(ctx, within)
		defer stop()
		return cc.Invoke(callCtx, "/s/m", nil, nil, grpc.WaitForReady(true))
	}

	failing := dial(t, &lbtest.StubBuilder{
		PolicyName: "drop_failing_stub",
		OnUpdate:   func(*lbtest.Stub, balancer.ClientConnState) error { return errors.New("bad config") },
	})
	await(ctx, t, failing, connectivity.TransientFailure)
	if err := failing.Invoke(ctx, "/s/m", nil, nil); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "bad config") {
		t.Errorf("a call to a child that rejected its update ends with %v, want UNAVAILABLE with the reason", err)
	}
	if err := call(failing, 50*time.Millisecond); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("a wait-for-ready call ends with %v, want DEADLINE_EXCEEDED", err)
	}

	stub := &lbtest.StubBuilder{PolicyName: "drop_channel_stub"}
	dropping := dial(t, stub)
	await(ctx, t, dropping, connectivity.Connecting)
	if err := call(dropping, 50*time.Millisecond); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("a call while the child is CONNECTING ends with %v, want DEADLINE_EXCEEDED", err)
	}
	stub.Get("child").Report(connectivity.Ready, nil)
	await(ctx, t, dropping, connectivity.Ready)
	if err := call(dropping, time.Minute); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), `"shed"`) {
		t.Errorf("a dropped call ends with %v, want UNAVAILABLE with the category", err)
	}
}
