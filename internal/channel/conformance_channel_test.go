package channel_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer/pickfirst"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
)

// Wait-for-ready calls wait during any failure. Other calls fail with UNAVAILABLE and the reason.
func TestWaitForReadyCallsOutlastFailures(t *testing.T) {
	for title, config := range policies {
		name, _, _ := strings.Cut(title, " ")
		t.Run(strings.TrimPrefix(title, "understudy_"), func(t *testing.T) {
			if strings.Contains(config, "%q") {
				config = strings.Replace(fmt.Sprintf(config, pickfirst.Name), `"id": "child"`, "", 1)
			}
			synctest.Test(t, func(t *testing.T) { waitForReady(t, fmt.Sprintf(`{"loadBalancingConfig": [{%q: %s}]}`, name, config)) })
		})
	}
}

func waitForReady(t *testing.T, config string) {
	listener, server := bufconn.Listen(1<<16), grpc.NewServer()
	healthpb.RegisterHealthServer(server, health.NewServer())
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()
	r := manual.NewBuilderWithScheme("test")
	r.InitialState(resolver.State{})
	cc, err := grpc.NewClient("test:///", grpc.WithResolvers(r), grpc.WithDefaultServiceConfig(config),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			if address == "down" {
				return nil, errors.New("refused")
			}
			return listener.DialContext(ctx)
		}))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cc.Close()
		synctest.Wait()
	}()
	call := func(opts ...grpc.CallOption) error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := healthpb.NewHealthClient(cc).Check(ctx, &healthpb.HealthCheckRequest{}, opts...)
		return err
	}
	setEndpoint := func(address string) {
		_ = r.CC().UpdateState(resolver.State{Endpoints: []resolver.Endpoint{hierarchy.Set(endpointWith(address), "child")}})
	}
	waiting := make(chan error, 1)
	go func() { waiting <- call(grpc.WaitForReady(true)) }()
	for _, failure := range []struct {
		name string
		make func()
		want string
	}{
		{"no endpoints", func() {}, "addresses|no endpoints"},
		{"a resolver error", func() { r.CC().ReportError(errors.New("no such host")) }, "no such host"},
		{"an endpoint that is down", func() { setEndpoint("down") }, "refused"},
	} {
		synctest.Wait()
		failure.make()
		synctest.Wait()
		if err := call(); status.Code(err) != codes.Unavailable || !regexp.MustCompile(failure.want).MatchString(err.Error()) {
			t.Errorf("%s: the call's error is %v, want UNAVAILABLE with %q", failure.name, err, failure.want)
		}
		select {
		case err := <-waiting:
			t.Fatalf("%s: the call that waits for ready ended with %v", failure.name, err)
		default:
		}
	}
	setEndpoint("up")
	if err := <-waiting; err != nil {
		t.Errorf("the call that waits for ready failed with %v", err)
	}
}
