package shell_test

import (
	"slices"
	"testing"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/understudy-lb/understudy/internal/lb/shell"
)

func TestEnded(t *testing.T) {
	for _, c := range []struct {
		code            codes.Code
		sent, received  bool
		wantsConclusive bool
	}{
		{codes.OK, true, true, true},
		{codes.NotFound, true, true, true},
		{codes.Internal, true, true, true},
		{codes.Internal, true, false, false},
		{codes.ResourceExhausted, true, false, false},
		{codes.Canceled, true, false, false},
		{codes.Canceled, true, true, true},
		{codes.Unavailable, true, false, true},
		{codes.DeadlineExceeded, true, false, true},
		{codes.DataLoss, true, false, true},
		{codes.Unavailable, false, false, false},
		{codes.DeadlineExceeded, false, false, false},
	} {
		code, conclusive := shell.Ended(&balancer.DoneInfo{Err: status.Error(c.code, ""), BytesSent: c.sent, BytesReceived: c.received})
		if code != c.code || conclusive != c.wantsConclusive {
			t.Errorf("%+v: %v, %v", c, code, conclusive)
		}
	}
}

func TestThen(t *testing.T) {
	var called []string
	record := func(what string) func(balancer.DoneInfo) {
		return func(balancer.DoneInfo) { called = append(called, what) }
	}
	shell.Then(record("first"), record("then"))(balancer.DoneInfo{})
	shell.Then(record("alone"), nil)(balancer.DoneInfo{})
	if !slices.Equal(called, []string{"first", "then", "alone"}) {
		t.Errorf("called %q", called)
	}
}
