package pickfirst

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"
)

func await(t *testing.T, cc *grpc.ClientConn, want connectivity.State) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for s := cc.GetState(); s != want; s = cc.GetState() {
		if !cc.WaitForStateChange(ctx, s) {
			t.Fatalf("the channel stays %v, want %v", s, want)
		}
	}
}

func TestChannelWhenAllAddressesAreRefused(t *testing.T) {
	t.Parallel()
	late := startBackend(t)
	late.kill()
	cc, s := dial(t, []string{refusedAddress(t), late.address})
	_, err := call(cc)
	if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "all 2 addresses failed, the last with: ") ||
		!strings.Contains(err.Error(), "connection refused") {
		t.Errorf("the call failed with %v", err)
	}
	waiting := make(chan error, 1)
	go func() {
		_, err := call(cc, grpc.WaitForReady(true))
		waiting <- err
	}()
	late.start()
	if err := <-waiting; err != nil {
		t.Errorf("the wait-for-ready call failed with %v", err)
	}
	if got, _ := s.published(); !strings.HasPrefix(got, "CONNECTING TRANSIENT_FAILURE") || !strings.HasSuffix(got, "TRANSIENT_FAILURE READY") ||
		strings.Count(got, "CONNECTING") != 1 {
		t.Errorf("published %s, want CONNECTING, TRANSIENT_FAILURE until READY", got)
	}
}

func TestChannelWhenServerIsKilledAndRestarted(t *testing.T) {
	first, second := startBackend(t), startBackend(t)
	second.kill() // otherwise, a second server might win if the first one takes more than 250 ms
	cc, s := dial(t, []string{first.address, second.address})
	wantCall(t, cc, first.address)
	second.start()
	first.kill()
	await(t, cc, connectivity.Idle)
	wantCall(t, cc, second.address)
	first.start()
	second.kill()
	await(t, cc, connectivity.Idle)
	wantCall(t, cc, first.address)
	if got, _ := s.published(); got != strings.TrimSpace(strings.Repeat("CONNECTING READY IDLE ", 2))+" CONNECTING READY" {
		t.Errorf("published %s", got)
	}
}
