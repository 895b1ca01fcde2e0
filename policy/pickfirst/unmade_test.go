package pickfirst

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

// refusingChannel is a fake channel whose NewSubConn fails for some or all addresses, as on a real
// channel that is closing.
type refusingChannel struct {
	lbtest.ClientConn

	mu       sync.Mutex
	accepts  func(address string) bool
	attempts map[string][]time.Time
}

func (r *refusingChannel) NewSubConn(list []resolver.Address, opts balancer.NewSubConnOptions) (balancer.SubConn, error) {
	address := list[0].Addr
	r.mu.Lock()
	if r.attempts == nil {
		r.attempts = map[string][]time.Time{}
	}
	r.attempts[address] = append(r.attempts[address], time.Now())
	makes := r.accepts
	r.mu.Unlock()
	if makes != nil && makes(address) {
		return r.ClientConn.NewSubConn(list, opts)
	}
	return nil, errors.New("closing")
}

func (r *refusingChannel) accept(makes func(string) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.accepts = makes
}

func (r *refusingChannel) attemptsTo(address string) []time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.attempts[address])
}

func oneOf(addresses ...string) func(string) bool {
	return func(a string) bool { return slices.Contains(addresses, a) }
}

func buildRefusing(t *testing.T) (*refusingChannel, balancer.Balancer) {
	cc := &refusingChannel{}
	p := balancer.Get(Name).Build(cc, balancer.BuildOptions{})
	t.Cleanup(p.Close)
	return cc, p
}

// The list changes while an address is in backoff after NewSubConn has failed. The backoff must
// continue. Other addresses must not get one.
func TestRefusalBackoffStaysWithAddress(t *testing.T) {
	for _, next := range [][]string{{"z"}, {"z", "y", "x", "w", "v", "u"}, {"z", "a"}} {
		synctest.Test(t, func(t *testing.T) {
			cc, p := buildRefusing(t)
			update(t, p, endpoints("a", "b", "c", "d", "e", "f"))
			cc.accept(oneOf(next...))
			update(t, p, endpoints(next...))
			synctest.Wait()
			if z := cc.SubConn("z"); z == nil || z.Connects() != 1 {
				t.Fatalf("%v: the first address of the new list was not tried", next)
			}
			advance(249 * time.Millisecond)
			if y := cc.SubConn(next[len(next)-1]); y != nil && len(next) > 1 {
				t.Errorf("%v: the last address was tried during the first turn", next)
			}
			cc.SubConn("z").Report(connectivity.Ready, nil)
			wantState(t, &cc.ClientConn, connectivity.Ready, "z")
		})
	}
}

// gRFC A62: "apply exponential backoff … attempt to reconnect … indefinitely". If NewSubConn
// fails, it is called again after 1 s, 1.6 s, 2.56 s and so on up to 2 min, each ±20 %, like
// gRPC's connection attempts.
func TestRefusedSubchannelIsRetriedIndefinitely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cc, p := buildRefusing(t)
		update(t, p, endpoints("a", "b"))
		advance(24 * time.Hour)
		for _, address := range []string{"a", "b"} {
			times, want := cc.attemptsTo(address), time.Second
			for i := 1; i < len(times); i++ {
				if gap := times[i].Sub(times[i-1]); gap < want*79/100 || gap > want*121/100 {
					t.Fatalf("attempt %d on %s came %v after the last, want %v ±20 %%", i, address, gap, want)
				}
				want = min(want*16/10, 2*time.Minute)
			}
			if len(times) < 600 {
				t.Errorf("%s was tried %d times in a day, want 600 or more", address, len(times))
			}
		}
		if n := cc.ResolveNows(); n < 600 {
			t.Errorf("%d re-resolutions in a day, want 600 or more", n)
		}
		cc.accept(oneOf("b"))
		advance(3 * time.Minute)
		cc.SubConn("b").Report(connectivity.Ready, nil)
		wantState(t, &cc.ClientConn, connectivity.Ready, "b")
		n := len(cc.attemptsTo("a"))
		advance(time.Hour)
		if len(cc.attemptsTo("a")) != n {
			t.Errorf("a is still tried while b is connected")
		}
	})
}

// An update arrives after NewSubConn has failed and before the policy handles this failure. There
// must be only one backoff.
func TestUpdateBeforeRefusalIsHandled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cc, p := buildRefusing(t)
		cc.accept(func(string) bool {
			cc.accept(oneOf("a"))
			go p.UpdateClientConnState(balancer.ClientConnState{ResolverState: endpoints("a", "b")})
			synctest.Wait()
			return false
		})
		update(t, p, endpoints("a"))
		synctest.Wait()
		if n := len(cc.attemptsTo("a")); n != 1 {
			t.Errorf("a was tried %d times immediately, want once", n)
		}
		advance(2 * time.Second)
		cc.SubConn("a").Report(connectivity.Connecting, nil)
		advance(time.Minute)
		wantState(t, &cc.ClientConn, connectivity.TransientFailure, "fail: all 2 addresses failed, the last with: closing")
		if n := len(cc.attemptsTo("a")); n != 2 {
			t.Errorf("a was tried %d times, want twice", n)
		}
	})
}

// NewSubConn fails while the channel is closing, before the policy is closed. Close must end the
// retries and the pass.
func TestCloseEndsRetriesOfRefusedSubchannels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cc, p := buildRefusing(t)
		cc.accept(oneOf("b"))
		update(t, p, endpoints("a", "b", "c"))
		advance(100 * time.Millisecond)
		p.Close()
		states := len(cc.States())
		advance(time.Hour)
		if n := len(cc.attemptsTo("a")) + len(cc.attemptsTo("b")) + len(cc.attemptsTo("c")); n != 2 || len(cc.States()) != states {
			t.Errorf("requested %d subchannels, want 2; published %v after Close", n, cc.States()[states:])
		}
	})
}
