package priority_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"
)

// Decision 8: on a real channel, calls fail with UNAVAILABLE through each failing
// picker that the policy makes itself, and those that wait for ready outwait it,
// even where what failed was a status error.
func TestCallsThatWaitForReadyOutwaitFailures(t *testing.T) {
	balancer.Register(mute{name: "mute"})
	balancer.Register(mute{name: "rejecting", err: status.Error(codes.InvalidArgument, "bad endpoints")})
	const mutes = `{"children":{"a":{"config":[{"mute":{}}]},"b":{"config":[{"mute":{}}]}},"priorities":["a","b"]}`
	for _, test := range []struct {
		name, config string
		pass         time.Duration
		err          error // of the resolver
		want         string
	}{
		{"no priorities", `{}`, 0, nil, "empty priority list"},
		{"the resolver failed", `{}`, 0, status.Error(codes.NotFound, "no such host"), "no such host"},
		{"the update was rejected", `{"children":{"a":{"config":[{"rejecting":{}}]}},"priorities":["a"]}`, 0, nil, "bad endpoints"},
		{"the failover timers expired", mutes, 20 * time.Second, nil, `child "b" did not connect within 10s`},
	} {
		synctest.Test(t, func(t *testing.T) {
			cc := channel(t, test.config, test.err)
			defer cc.Close()
			<-time.After(test.pass)
			synctest.Wait()
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			err := cc.Invoke(ctx, "/service/method", nil, nil)
			if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: a call failed with %v, want UNAVAILABLE and %q", test.name, err, test.want)
			}
			err = cc.Invoke(ctx, "/service/method", nil, nil, grpc.WaitForReady(true))
			if status.Code(err) != codes.DeadlineExceeded {
				t.Errorf("%s: a call that waits for ready ended with %v, want its deadline", test.name, err)
			}
		})
	}
}

// channel returns a channel whose resolver gave it the policy's configuration, and
// then an error if err is not nil.
func channel(t *testing.T, config string, err error) *grpc.ClientConn {
	r := manual.NewBuilderWithScheme("manual")
	cc, dialErr := grpc.NewClient("manual:///target",
		grpc.WithResolvers(r),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig":[{"understudy_priority":`+config+`}]}`),
		grpc.WithIdleTimeout(0))
	if dialErr != nil {
		t.Fatal(dialErr)
	}
	r.InitialState(resolver.State{Endpoints: []resolver.Endpoint{{Addresses: []resolver.Address{{Addr: "192.0.2.1:1"}}}}})
	cc.Connect()
	synctest.Wait()
	if err != nil {
		r.CC().ReportError(err)
		synctest.Wait()
	}
	return cc
}

// mute is a policy that never reports, and returns err from its updates.
type mute struct {
	name string
	err  error
}

func (m mute) Name() string                                                       { return m.name }
func (m mute) Build(balancer.ClientConn, balancer.BuildOptions) balancer.Balancer { return m }
func (m mute) UpdateClientConnState(balancer.ClientConnState) error               { return m.err }
func (mute) ResolverError(error)                                                  {}
func (mute) UpdateSubConnState(balancer.SubConn, balancer.SubConnState)           {}
func (mute) ExitIdle()                                                            {}
func (mute) Close()                                                               {}
