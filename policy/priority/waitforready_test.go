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

// A child or the resolver fails with a status error. Wait-for-ready calls must nevertheless wait.
func TestStatusErrorsDoNotEndWaitForReadyCalls(t *testing.T) {
	balancer.Register(refusingPolicy{})
	for _, test := range []struct {
		config string
		err    error
		want   string
	}{
		{`{}`, status.Error(codes.NotFound, "no such host"), "no such host"},
		{`{"children":{"a":{"config":[{"refusing":{}}]}},"priorities":["a"]}`, nil, "bad endpoints"},
	} {
		synctest.Test(t, func(t *testing.T) {
			cc := dialWithConfig(t, test.config, test.err)
			defer cc.Close()
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			err := cc.Invoke(ctx, "/service/method", nil, nil)
			if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), test.want) {
				t.Errorf("a call failed with %v, want UNAVAILABLE and %q", err, test.want)
			}
			err = cc.Invoke(ctx, "/service/method", nil, nil, grpc.WaitForReady(true))
			if status.Code(err) != codes.DeadlineExceeded {
				t.Errorf("a wait-for-ready call failed with %v, want DEADLINE_EXCEEDED", err)
			}
		})
	}
}

func dialWithConfig(t *testing.T, config string, err error) *grpc.ClientConn {
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

type refusingPolicy struct{}

func (refusingPolicy) Name() string { return "refusing" }

func (refusingPolicy) Build(balancer.ClientConn, balancer.BuildOptions) balancer.Balancer {
	return refusingPolicy{}
}

func (refusingPolicy) UpdateClientConnState(balancer.ClientConnState) error {
	return status.Error(codes.InvalidArgument, "bad endpoints")
}

func (refusingPolicy) ResolverError(error)                                        {}
func (refusingPolicy) UpdateSubConnState(balancer.SubConn, balancer.SubConnState) {}
func (refusingPolicy) ExitIdle()                                                  {}
func (refusingPolicy) Close()                                                     {}
