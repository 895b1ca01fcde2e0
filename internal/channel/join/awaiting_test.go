package join_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/testing/flat"
	"github.com/understudy-lb/understudy/internal/testing/scripttest"
)

func withWaitingChannel(t *testing.T, f func(s *scripttest.Source, cc *grpc.ClientConn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		listener := scripttest.Serve(t, health.NewServer())
		s := &scripttest.Source{}
		f(s, scripttest.Open(t, "x", []discovery.Mechanism{{Source: s}}, nil,
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) })))
	})
}

func call(ctx context.Context, cc *grpc.ClientConn, deadline time.Duration, wait bool) <-chan error {
	result := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(ctx, deadline)
		defer cancel()
		_, err := healthpb.NewHealthClient(cc).Check(ctx, &healthpb.HealthCheckRequest{}, grpc.WaitForReady(wait))
		result <- err
	}()
	return result
}

func wantError(t *testing.T, about string, err error, code codes.Code, text string) {
	t.Helper()
	if status.Code(err) != code || !strings.Contains(err.Error(), text) {
		t.Errorf("%s: the call ended with %v, want %v: %s", about, err, code, text)
	}
}

func TestErrorContainsReasonForWait(t *testing.T) {
	const text = "while waiting for endpoints: story: no answer yet: dialling the registry"
	withWaitingChannel(t, func(s *scripttest.Source, cc *grpc.ClientConn) {
		s.Receiver.Trying("dialling the registry")
		for _, wait := range []bool{false, true} {
			wantError(t, "at its deadline", <-call(context.Background(), cc, time.Second, wait), codes.DeadlineExceeded, "context deadline exceeded "+text)
			ctx, cancel := context.WithCancel(context.Background())
			over := call(ctx, cc, time.Minute, wait)
			time.Sleep(time.Second)
			cancel()
			wantError(t, "cancelled", <-over, codes.Canceled, "context canceled "+text)
		}
		s.Receiver.Trying("reading its list")
		wantError(t, "later", <-call(context.Background(), cc, time.Second, false), codes.DeadlineExceeded, "no answer yet: reading its list")
		if state := cc.GetState(); state != connectivity.Connecting {
			t.Errorf("the channel is %v", state)
		}
	})
}

// Waiting calls must continue when the first endpoint arrives, and fail when the source fails.
func TestWaitingCallsContinue(t *testing.T) {
	withWaitingChannel(t, func(s *scripttest.Source, cc *grpc.ClientConn) {
		s.Receiver.Trying("dialling the registry")
		time.Sleep(time.Second)
		waitForReady, failFast := call(context.Background(), cc, time.Hour, true), call(context.Background(), cc, time.Hour, false)
		time.Sleep(time.Second)
		s.Receiver.Fail(errors.New("no registry"))
		wantError(t, "after a failure", <-failFast, codes.Unavailable, "story: no registry")
		synctest.Wait()
		if len(waitForReady) > 0 {
			t.Errorf("a call that waits for ready ended with %v", <-waitForReady)
		}
		if err := s.Receiver.Update(flat.Answer(flat.Endpoint{Address: "10.0.0.1:1"})); err != nil {
			t.Error(err)
		}
		if err := <-waitForReady; err != nil {
			t.Errorf("the waiting call ended with %v after an answer", err)
		}
	})
	withWaitingChannel(t, func(s *scripttest.Source, cc *grpc.ClientConn) {
		s.Receiver.Trying("dialling the registry")
		time.Sleep(time.Second)
		over := call(context.Background(), cc, time.Hour, false)
		time.Sleep(time.Second)
		_ = s.Receiver.Update(flat.Answer(flat.Endpoint{Address: "10.0.0.1:1"}))
		if err := <-over; err != nil {
			t.Errorf("a call ended with %v after an answer", err)
		}
		if err := <-call(context.Background(), cc, time.Second, false); err != nil {
			t.Error(err)
		}
	})
}

func TestWaitingCallsEndWithChannel(t *testing.T) {
	withWaitingChannel(t, func(s *scripttest.Source, cc *grpc.ClientConn) {
		s.Receiver.Trying("dialling the registry")
		time.Sleep(time.Second)
		over := call(context.Background(), cc, time.Hour, true)
		time.Sleep(time.Second)
		if err := cc.Close(); err != nil {
			t.Error(err)
		}
		wantError(t, "closed", <-over, codes.Canceled, "closing")
	})
}
