package awaiting_test

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
	"github.com/understudy-lb/understudy/internal/testing/toldtest"
)

func opening(t *testing.T, f func(s *toldtest.Source, cc *grpc.ClientConn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		listener := toldtest.Serve(t, health.NewServer())
		s := &toldtest.Source{}
		f(s, toldtest.Open(t, "x", []discovery.Mechanism{{Source: s}}, nil,
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) })))
	})
}

func call(ctx context.Context, cc *grpc.ClientConn, deadline time.Duration, wait bool) <-chan error {
	over := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(ctx, deadline)
		defer cancel()
		_, err := healthpb.NewHealthClient(cc).Check(ctx, &healthpb.HealthCheckRequest{}, grpc.WaitForReady(wait))
		over <- err
	}()
	return over
}

func wantError(t *testing.T, about string, err error, code codes.Code, text string) {
	t.Helper()
	if status.Code(err) != code || !strings.Contains(err.Error(), text) {
		t.Errorf("%s: the call ended with %v, want %v: %s", about, err, code, text)
	}
}

func TestACallSaysWhatItWaitedFor(t *testing.T) {
	const text = "while waiting for endpoints: story: no answer yet: dialling the registry"
	opening(t, func(s *toldtest.Source, cc *grpc.ClientConn) {
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

// Calls that wait must continue when the first endpoint arrives, and fail when the source fails.
func TestCallsThatWaitGoOn(t *testing.T) {
	opening(t, func(s *toldtest.Source, cc *grpc.ClientConn) {
		s.Receiver.Trying("dialling the registry")
		time.Sleep(time.Second)
		patient, other := call(context.Background(), cc, time.Hour, true), call(context.Background(), cc, time.Hour, false)
		time.Sleep(time.Second)
		s.Receiver.Fail(errors.New("no registry"))
		wantError(t, "after a failure", <-other, codes.Unavailable, "story: no registry")
		synctest.Wait()
		if len(patient) > 0 {
			t.Errorf("a call that waits for ready ended with %v", <-patient)
		}
		if err := s.Receiver.Update(flat.Answer(flat.Endpoint{Address: "10.0.0.1:1"})); err != nil {
			t.Error(err)
		}
		if err := <-patient; err != nil {
			t.Errorf("the waiting call ended with %v after an answer", err)
		}
	})
	opening(t, func(s *toldtest.Source, cc *grpc.ClientConn) {
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

func TestCallsThatWaitEndWithTheChannel(t *testing.T) {
	opening(t, func(s *toldtest.Source, cc *grpc.ClientConn) {
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

// A source answers with a list of discovery mechanisms. The errors of calls must then say what
// these mechanisms are waiting for.
func TestACallSaysWhatAPartWaitsFor(t *testing.T) {
	opening(t, func(s *toldtest.Source, cc *grpc.ClientConn) {
		s.Receiver.Trying("dialling the registry")
		time.Sleep(time.Second)
		part := &toldtest.Source{}
		s.Receiver.Parts([]discovery.Mechanism{{Name: "shop", Source: part}})
		part.Receiver.Trying("waiting for its endpoints")
		const text = "while waiting for endpoints: story: shop: no answer yet: waiting for its endpoints"
		wantError(t, "at its deadline", <-call(context.Background(), cc, time.Second, false), codes.DeadlineExceeded, text)
	})
}
