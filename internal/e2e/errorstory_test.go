package e2e

import (
	"context"
	"regexp"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/understudy-lb/understudy/internal/config/options"
	"github.com/understudy-lb/understudy/internal/testing/flat"
	"github.com/understudy-lb/understudy/internal/testing/given"
	"github.com/understudy-lb/understudy/internal/testing/scripttest"
)

type healthServer struct {
	healthpb.UnimplementedHealthServer
	code atomic.Uint32
}

func (a *healthServer) Check(context.Context, *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	if code := codes.Code(a.code.Load()); code != codes.OK {
		return nil, status.Error(code, "the disk is full")
	}
	return &healthpb.HealthCheckResponse{}, nil
}

func serveErrors(t *testing.T) (*healthServer, *bufconn.Listener) {
	t.Helper()
	answers := &healthServer{}
	return answers, scripttest.Serve(t, answers)
}

// ejections are records of their own: which endpoint is the first to fail five times is random.
var ejections = regexp.MustCompile(`level=WARN msg=(ejected target=story:///shop endpoint=10\.\d\.\d\.\d:443 priority="[^"]*" by=consecutive_failures code=(INTERNAL|UNAVAILABLE)|"ejection ended" target=story:///shop endpoint=10\.\d\.\d\.\d:443)\n`)

// If backends answer with errors, the log reports failing calls and not failing connections.
// Without another priority, calls fail with the backends' error.
func TestErrorsAndLogWhenBackendsReturnErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, nearListener := serveErrors(t)
		far, farListener := serveErrors(t)
		s, cc := newStory(t, given.Set("OutlierDetection", options.On), given.Set("Overflow", true), given.Set("WarmStandby", 1))
		s.listeners = map[string]*bufconn.Listener{"4": nearListener, "5": farListener}
		s.Receiver.Update(flat.Answer(endpointAt(0, "us-east/a", "10.0.0.4"), endpointAt(0, "us-east/b", "10.0.1.4"), endpointAt(1, "eu-west", "10.1.0.5")))
		synctest.Wait()
		// call makes ten calls per second. It stops after limit calls, or as soon as a line is logged.
		call := func(limit int) (log string, err error) {
			for range limit {
				_, err = healthpb.NewHealthClient(cc).Check(t.Context(), &healthpb.HealthCheckRequest{})
				time.Sleep(100 * time.Millisecond)
				synctest.Wait()
				if log = ejections.ReplaceAllString(s.take(), ""); log != "" {
					break
				}
			}
			return log, err
		}
		want := func(what, log, want string) {
			t.Helper()
			if log != want {
				t.Errorf("%s: logged\n%swant\n%s", what, log, want)
			}
		}
		log, err := call(100)
		if want("before the errors", log, ""); err != nil {
			t.Errorf("calls fail with %v", err)
		}
		near.code.Store(uint32(codes.Internal))
		log, err = call(100)
		want("the first priority returns errors", log, `level=WARN msg=share target=story:///shop priority="p0 us-east/a, us-east/b" share=0 reason=broken
`)
		if got := status.Convert(err); got.Code() != codes.Internal || got.Message() != "the disk is full" {
			t.Errorf("the calls before the failover end with %v, want the backend's error", err)
		}
		if log, err = call(5); err != nil {
			t.Errorf("the calls after it end with %v", err)
		}
		want("the second priority is in use", log, "")
		far.code.Store(uint32(codes.Unavailable))
		if log, err = call(100); status.Convert(err).Message() != "the disk is full" {
			t.Errorf("without a healthy priority calls end with %v, want the backend's error", err)
		}
		want("both priorities return errors", log, `level=WARN msg="calls fail at every priority" target=story:///shop reason="p0 us-east/a, us-east/b takes only probes: broken; p1 eu-west has no good answers"
`)
	})
}
