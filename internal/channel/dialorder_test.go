package channel_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/understudy-lb/understudy"
)

func TestDialOptionsOverrideKeepaliveAndBackoff(t *testing.T) {
	options := understudy.Options{
		Keepalive:         keepalive.ClientParameters{Time: 10 * time.Second, PermitWithoutStream: true},
		MaxConnectBackoff: time.Second,
	}
	userOptions := []grpc.DialOption{
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: time.Hour, PermitWithoutStream: true}),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: time.Hour, Multiplier: 1, MaxDelay: time.Hour}}),
	}
	for name, test := range map[string]struct {
		dialOptions []grpc.DialOption
		wantLines   int
		least, most int
	}{
		"ours": {nil, 1, 400, 1000}, "the caller's": {userOptions, 0, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &logRecords{}
				o := options
				o.Logger = slog.New(r)
				m := newMemory(t) // servers that allow one ping in 5 minutes
				m.setDown(true, "b0")
				m.newChannel("failover:///tier:///a1", o, test.dialOptions...)
				m.newChannel("failover:///tier:///b1", o, test.dialOptions...)
				time.Sleep(10 * time.Minute)
				lines := slices.DeleteFunc(r.take(true), func(line string) bool { return !strings.Contains(line, "keepalive") })
				if len(lines) != test.wantLines {
					t.Errorf("logged %q, want %d lines", lines, test.wantLines)
				}
				if n := m.attempts("b0"); n < test.least || n > test.most {
					t.Errorf("%d attempts to connect in 10 minutes, want %d to %d", n, test.least, test.most)
				}
			})
		})
	}
}

func TestRetryMethods(t *testing.T) {
	for name, want := range map[string]int{
		"":                                    1,
		healthpb.Health_Check_FullMethodName:  4,
		"/grpc.health.v1.Health/":             4,
		healthpb.Health_List_FullMethodName:   1,
		"/grpc.health.v1.Health2/":            1,
		"/grpc.health.v1.Health/CheckAnother": 1,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				attempts := 0
				m := newMemory(t, grpc.UnaryInterceptor(func(context.Context, any, *grpc.UnaryServerInfo, grpc.UnaryHandler) (any, error) {
					attempts++
					return nil, status.Error(codes.Unavailable, "not now")
				}))
				o := understudy.Recommended()
				if name != "" {
					o.RetryMethods = []string{name}
				}
				cc := m.newChannel("failover:///tier:///a1", o)
				_, err := healthpb.NewHealthClient(cc).Check(t.Context(), &healthpb.HealthCheckRequest{}, grpc.WaitForReady(true))
				if status.Code(err) != codes.Unavailable || attempts != want {
					t.Errorf("%v after %d attempts, want %d", err, attempts, want)
				}
			})
		})
	}
}
