package pickfirst

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver/manual"
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

func TestChannelSkipsRefusedAddress(t *testing.T) {
	good := startBackend(t)
	cc, s := dial(t, []string{refusedAddress(t), good.address})
	for range 10 {
		wantCall(t, cc, good.address)
	}
	if got, _ := s.published(); got != "CONNECTING READY" {
		t.Errorf("published %s, want CONNECTING READY", got)
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

func TestChannelAfterGoAway(t *testing.T) {
	b := startBackend(t)
	cc, _ := dial(t, []string{b.address})
	wantCall(t, cc, b.address)
	b.server.GracefulStop()
	await(t, cc, connectivity.Idle)
	b.start()
	wantCall(t, cc, b.address, grpc.WaitForReady(true)) // the call waits for the backoff that follows a short connection
}

func TestChannelKeepsConnectionAcrossUpdates(t *testing.T) {
	a, b, c := startBackend(t), startBackend(t), startBackend(t)
	cc, s := dial(t, []string{a.address})
	wantCall(t, cc, a.address)
	for _, list := range [][]string{{b.address, a.address}, {c.address, b.address, a.address}, {a.address}} {
		s.resolver.UpdateState(endpoints(list...))
		wantCall(t, cc, a.address)
	}
	s.resolver.UpdateState(endpoints(c.address))
	wantCall(t, cc, c.address)
	if got, _ := s.published(); got != "CONNECTING READY CONNECTING READY" {
		t.Errorf("published %s", got)
	}
}

// A thousand channels shuffle ten addresses. About equally many must connect to each server. With 9
// degrees of freedom, chi-squared is above 50 by chance once in ten million runs.
func TestThousandClientsSpreadEvenly(t *testing.T) {
	t.Parallel()
	const clients, servers, limit = 1000, 10, 50.0
	counts := map[string]int{}
	var addresses []string
	for range servers {
		b := startBackend(t)
		addresses = append(addresses, b.address)
		counts[b.address] = 0
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	tokens := make(chan struct{}, 16)
	for range clients {
		tokens <- struct{}{}
		wg.Go(func() {
			defer func() { <-tokens }()
			got, err := callOnce(addresses)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			counts[got]++
		})
	}
	wg.Wait()
	var chi2 float64
	for _, address := range addresses {
		const expected = float64(clients) / servers
		d := float64(counts[address]) - expected
		chi2 += d * d / expected
	}
	t.Logf("chi-squared %.1f: %v", chi2, counts)
	if chi2 > limit {
		t.Errorf("chi-squared is %.1f, want at most %v: %v", chi2, limit, counts)
	}
}

func callOnce(addresses []string) (string, error) {
	r := manual.NewBuilderWithScheme("listed")
	r.InitialState(endpoints(addresses...))
	cc, err := grpc.NewClient("listed:///backends",
		grpc.WithResolvers(r),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(fmt.Sprintf(`{"loadBalancingConfig": [{%q: {"shuffleAddressList": true}}]}`, Name)))
	if err != nil {
		return "", err
	}
	defer cc.Close()
	return call(cc)
}
