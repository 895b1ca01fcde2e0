package outlierdetection

import (
	"errors"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/understudy-lb/understudy/internal/config/lbconfig"
)

func doneInfo(code codes.Code, sent, received bool) balancer.DoneInfo {
	return balancer.DoneInfo{Err: status.Error(code, ""), BytesSent: sent, BytesReceived: received}
}

func TestCallResults(t *testing.T) {
	for _, test := range []struct {
		name string
		info balancer.DoneInfo
		want callResult
	}{
		{"an answer", doneInfo(codes.OK, true, true), success},
		{"an error status that is not a failure", doneInfo(codes.NotFound, true, true), success},
		{"a server's RESOURCE_EXHAUSTED", doneInfo(codes.ResourceExhausted, true, true), failure},
		{"the client's own size limit", doneInfo(codes.ResourceExhausted, true, false), inconclusive},
		{"a message that cannot be marshaled", doneInfo(codes.Internal, true, false), inconclusive},
		{"a server's INTERNAL", doneInfo(codes.Internal, true, true), failure},
		{"a server's UNKNOWN", doneInfo(codes.Unknown, true, true), failure},
		{"a client error without a status", balancer.DoneInfo{Err: errors.New("x"), BytesSent: true}, inconclusive},
		{"a token source that fails before the call is sent", doneInfo(codes.Unavailable, false, false), inconclusive},
		{"a server that hangs", doneInfo(codes.DeadlineExceeded, true, false), failure},
		{"a server that hangs after its first bytes", doneInfo(codes.DeadlineExceeded, true, true), failure},
		{"a lost connection", doneInfo(codes.Unavailable, true, false), failure},
		{"lost data", doneInfo(codes.DataLoss, true, false), failure},
		{"a client that cancels", doneInfo(codes.Canceled, true, false), inconclusive},
		{"a client that cancels a stream after an answer", doneInfo(codes.Canceled, true, true), success},
		{"a pick of a connection that was just lost", balancer.DoneInfo{}, inconclusive},
		{"neither an answer nor an error", doneInfo(codes.OK, true, false), inconclusive},
		{"an undefined code", doneInfo(99, true, true), success},
	} {
		c := lbconfig.New[lbconfig.OutlierDetection]()
		c.ConsecutiveFailuresEjection = lbconfig.New[lbconfig.ConsecutiveFailuresEjection]()
		if got := rulesOf(c).of(&test.info); got != test.want {
			t.Errorf("%s: verdict %d, want %d", test.name, got, test.want)
		}
	}
}

func TestFailureCodes(t *testing.T) {
	c := lbconfig.New[lbconfig.OutlierDetection]()
	c.ConsecutiveFailuresEjection = lbconfig.New[lbconfig.ConsecutiveFailuresEjection]()
	c.FailureCodes = []lbconfig.Code{"NOT_FOUND", "CANCELLED", "UNAVAILABLE"}
	r := rulesOf(c)
	for info, want := range map[*balancer.DoneInfo]callResult{
		{Err: status.Error(codes.NotFound, ""), BytesSent: true, BytesReceived: true}: failure,
		{Err: status.Error(codes.NotFound, ""), BytesSent: true}:                      inconclusive,
		{Err: status.Error(codes.Canceled, ""), BytesSent: true, BytesReceived: true}: failure,
		{Err: status.Error(codes.Canceled, ""), BytesSent: true}:                      inconclusive,
		{Err: status.Error(codes.Unavailable, ""), BytesSent: true}:                   failure,
		{Err: status.Error(codes.Internal, ""), BytesSent: true, BytesReceived: true}: success,
		{Err: status.Error(codes.DeadlineExceeded, ""), BytesSent: true}:              inconclusive,
	} {
		if got := r.of(info); got != want {
			t.Errorf("%v, sent %v, received %v: verdict %d, want %d", info.Err, info.BytesSent, info.BytesReceived, got, want)
		}
	}
}

func TestInconclusiveCallsAreNotCounted(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.Update(consecutiveConfig(), []string{"a", "b"})
		for range 100 {
			h.end("a", balancer.DoneInfo{})
			h.end("a", doneInfo(codes.Internal, true, false))
			h.end("a", doneInfo(codes.Unavailable, false, false))
			h.end("a", doneInfo(codes.Canceled, true, false))
		}
		h.wantReceived()
		for i := range 5 {
			h.wantReceived()
			h.end("a", doneInfo(codes.DeadlineExceeded, true, false))
			if i < 4 {
				h.end("a", balancer.DoneInfo{})
			}
		}
		h.wantReceived("a TRANSIENT_FAILURE")
	})
}

// All calls of a connection are lost at once. That's one failure in a row, or else a reset would
// eject an endpoint that works.
func TestLostConnectionIsOneFailure(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.Update(consecutiveConfig(), []string{"a", "b"})
		for range 4 {
			for range 10 {
				h.Begin("a")
			}
			for _, ended := range h.calls["a"] {
				ended(doneInfo(codes.Unavailable, true, false))
			}
			h.calls["a"] = nil
		}
		synctest.Wait()
		h.wantReceived()
		h.end("a", doneInfo(codes.Unavailable, true, false))
		h.wantReceived("a TRANSIENT_FAILURE")
	})
}
