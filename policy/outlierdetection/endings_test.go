package outlierdetection

import (
	"context"
	"testing/synctest"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"

	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

var endings = map[string]balancer.DoneInfo{
	"ok":     {BytesSent: true, BytesReceived: true},
	"failed": doneInfo(codes.Internal, true, true),
	"lost":   doneInfo(codes.Unavailable, true, false),
}

func (h *harness) Call(endpoint string, ok bool) {
	h.t.Helper()
	if ok {
		h.end(endpoint, endings["ok"])
	} else {
		h.end(endpoint, endings["failed"])
	}
}

func (h *harness) end(endpoint string, info balancer.DoneInfo) {
	h.t.Helper()
	h.Begin(endpoint)
	calls := h.calls[endpoint]
	h.calls[endpoint] = calls[:len(calls)-1]
	calls[len(calls)-1](info)
	synctest.Wait()
}

func (h *harness) Begin(endpoint string) {
	h.t.Helper()
	ctx := context.WithValue(context.Background(), endpointKey{}, endpoint)
	result, err := h.cc.State().Picker.Pick(balancer.PickInfo{Ctx: ctx})
	if err != nil {
		h.t.Fatal(err)
	}
	if _, ours := result.SubConn.(*lbtest.SubConn); !ours {
		h.t.Fatalf("picked a %T, want a subchannel of the channel", result.SubConn)
	}
	if result.Done == nil {
		result.Done = func(balancer.DoneInfo) {}
	}
	h.calls[endpoint] = append(h.calls[endpoint], result.Done)
}

func (h *harness) End(endpoint, how string) {
	done := h.calls[endpoint][0]
	h.calls[endpoint] = h.calls[endpoint][1:]
	done(endings[how])
	synctest.Wait()
}
