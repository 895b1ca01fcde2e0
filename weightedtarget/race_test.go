package weightedtarget

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"

	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

func TestWaitForReadyOutwaitsEveryFailure(t *testing.T) {
	stub := &lbtest.StubBuilder{PolicyName: "weighted_target_wait_stub"}
	balancer.Register(stub)
	failing := &lbtest.StubBuilder{PolicyName: "weighted_target_failing_stub", OnUpdate: func(*lbtest.Stub, balancer.ClientConnState) error {
		return errors.New("no good")
	}}
	balancer.Register(failing)
	failed := func(s *lbtest.Stub) { s.Report(connectivity.TransientFailure, errors.New("refused")) }
	for name, test := range map[string]struct {
		config string
		act    func(*lbtest.Stub)
	}{
		"no targets":   {config: `{}`},
		"child failed": {config: `{"targets": {"a": {"weight": 1, "childPolicy": [{"weighted_target_wait_stub": {"id": "a"}}]}}}`, act: failed},
		"update fails": {config: `{"targets": {"a": {"weight": 1, "childPolicy": [{"weighted_target_failing_stub": {}}]}}}`},
	} {
		r := manual.NewBuilderWithScheme("wait")
		r.InitialState(resolver.State{Endpoints: []resolver.Endpoint{{Addresses: []resolver.Address{{Addr: "127.0.0.1:1"}}}}})
		cc, err := grpc.NewClient("wait:///", grpc.WithResolvers(r), grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"understudy_weighted_target": `+test.config+`}]}`))
		if err != nil {
			t.Fatal(err)
		}
		cc.Connect()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		if test.act != nil {
			for state := cc.GetState(); state != connectivity.Connecting; state = cc.GetState() {
				cc.WaitForStateChange(ctx, state)
			}
			test.act(stub.Get("a"))
		}
		for state := cc.GetState(); state != connectivity.TransientFailure; state = cc.GetState() {
			if !cc.WaitForStateChange(ctx, state) {
				t.Fatalf("%s: the channel is %v, want TRANSIENT_FAILURE", name, state)
			}
		}
		if err := cc.Invoke(ctx, "/s/m", nil, nil); status.Code(err).String() != "Unavailable" {
			t.Errorf("%s: a call fails with %v, want UNAVAILABLE", name, err)
		}
		waitCtx, stop := context.WithTimeout(ctx, 50*time.Millisecond)
		if err := cc.Invoke(waitCtx, "/s/m", nil, nil, grpc.WaitForReady(true)); status.Code(err).String() != "DeadlineExceeded" {
			t.Errorf("%s: a wait-for-ready call ends with %v, want DEADLINE_EXCEEDED", name, err)
		}
		stop()
		cancel()
		cc.Close()
	}
}
