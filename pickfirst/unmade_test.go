package pickfirst

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"
	"pgregory.net/rapid"

	core "github.com/understudy-lb/understudy/internal/core/pickfirst"
	"github.com/understudy-lb/understudy/internal/stateattr"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

// refusing is a channel whose NewSubConn fails for some or all addresses, as on a real channel that
// is closing.
type refusing struct {
	lbtest.ClientConn

	mu    sync.Mutex
	makes func(address string) bool
	asked map[string][]time.Time
}

func (r *refusing) NewSubConn(list []resolver.Address, opts balancer.NewSubConnOptions) (balancer.SubConn, error) {
	address := list[0].Addr
	r.mu.Lock()
	if r.asked == nil {
		r.asked = map[string][]time.Time{}
	}
	r.asked[address] = append(r.asked[address], time.Now())
	makes := r.makes
	r.mu.Unlock()
	if makes != nil && makes(address) {
		return r.ClientConn.NewSubConn(list, opts)
	}
	return nil, errors.New("closing")
}

func (r *refusing) accept(makes func(string) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.makes = makes
}

func (r *refusing) times(address string) []time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.asked[address])
}

func only(addresses ...string) func(string) bool {
	return func(a string) bool { return slices.Contains(addresses, a) }
}

func buildRefusing(t *testing.T) (*refusing, balancer.Balancer) {
	cc := &refusing{}
	p := balancer.Get(Name).Build(cc, balancer.BuildOptions{})
	t.Cleanup(p.Close)
	return cc, p
}

func TestRefusedSubchannelIsFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cc, p := buildRefusing(t)
		update(t, p, endpoints("a", "b"))
		synctest.Wait()
		want(t, &cc.ClientConn, connectivity.TransientFailure, "fail: all 2 addresses failed, the last with: closing")
	})
}

// The list changes while an address is in backoff after NewSubConn has failed. The backoff must
// continue. Other addresses must not get one.
func TestRefusalBackoffStaysWithAddress(t *testing.T) {
	for _, next := range [][]string{{"z"}, {"z", "y", "x", "w", "v", "u"}, {"z", "a"}} {
		synctest.Test(t, func(t *testing.T) {
			cc, p := buildRefusing(t)
			update(t, p, endpoints("a", "b", "c", "d", "e", "f"))
			cc.accept(only(next...))
			update(t, p, endpoints(next...))
			synctest.Wait()
			if z := cc.SubConn("z"); z == nil || z.Connects() != 1 {
				t.Fatalf("%v: the first address of the new list was not tried", next)
			}
			pass(249 * time.Millisecond)
			if y := cc.SubConn(next[len(next)-1]); y != nil && len(next) > 1 {
				t.Errorf("%v: the last address was tried during the first turn", next)
			}
			cc.SubConn("z").Report(connectivity.Ready, nil)
			want(t, &cc.ClientConn, connectivity.Ready, "z")
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
		pass(24 * time.Hour)
		for _, address := range []string{"a", "b"} {
			times, want := cc.times(address), time.Second
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
		cc.accept(only("b"))
		pass(3 * time.Minute)
		cc.SubConn("b").Report(connectivity.Ready, nil)
		want(t, &cc.ClientConn, connectivity.Ready, "b")
		n := len(cc.times("a"))
		pass(time.Hour)
		if len(cc.times("a")) != n {
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
			cc.accept(only("a"))
			go p.UpdateClientConnState(balancer.ClientConnState{ResolverState: endpoints("a", "b")})
			synctest.Wait()
			return false
		})
		update(t, p, endpoints("a"))
		synctest.Wait()
		if n := len(cc.times("a")); n != 1 {
			t.Errorf("a was tried %d times immediately, want once", n)
		}
		pass(2 * time.Second)
		cc.SubConn("a").Report(connectivity.Connecting, nil)
		pass(time.Minute)
		want(t, &cc.ClientConn, connectivity.TransientFailure, "fail: all 2 addresses failed, the last with: closing")
		if n := len(cc.times("a")); n != 2 {
			t.Errorf("a was tried %d times, want twice", n)
		}
	})
}

func TestRefusedForSomeAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cc, p := buildRefusing(t)
		cc.accept(only("b"))
		update(t, p, endpoints("a", "b", "c"))
		synctest.Wait()
		want(t, &cc.ClientConn, connectivity.Connecting, "queue")
		cc.SubConn("b").Report(connectivity.Connecting, nil)
		cc.SubConn("b").Report(connectivity.Ready, nil)
		want(t, &cc.ClientConn, connectivity.Ready, "b")
		cc.accept(only("a"))
		cc.SubConn("b").Report(connectivity.Idle, nil)
		p.ExitIdle()
		want(t, &cc.ClientConn, connectivity.Connecting, "queue")
		cc.SubConn("a").Report(connectivity.Ready, nil)
		want(t, &cc.ClientConn, connectivity.Ready, "a")
	})
}

// NewSubConn fails while the channel is closing, before the policy is closed. Close must end the
// retries.
func TestCloseEndsRetriesOfRefusedSubchannels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cc, p := buildRefusing(t)
		update(t, p, endpoints("a", "b"))
		pass(time.Second / 2)
		p.Close()
		states := len(cc.States())
		pass(time.Hour)
		if n := len(cc.times("a")) + len(cc.times("b")); n != 2 || len(cc.States()) != states {
			t.Errorf("requested %d subchannels, want 2; published %v after Close", n, cc.States()[states:])
		}
	})
}

type refusal struct {
	step    step
	refused []string
}

func drawRefusal(t *rapid.T) refusal {
	refused := rapid.SliceOfDistinct(rapid.SampledFrom(addressNames), rapid.ID)
	return refusal{drawStep(t), refused.Draw(t, "refused")}
}

func TestRandomRefusals(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		schedule := rapid.SliceOfN(rapid.Custom(drawRefusal), 1, 30).Draw(rt, "schedule")
		var verdict error
		synctest.Test(t, func(*testing.T) { verdict = afterRefusals(schedule) })
		if verdict != nil {
			rt.Fatal(verdict)
		}
	})
}

func afterRefusals(schedule []refusal) error {
	r := newRecorder(balancer.Get(Name), stateattr.EnableHealthListener)
	defer r.Close()
	list := addressNames[:1]
	r.Update(list, false)
	for _, s := range schedule {
		r.refuse(s.refused...)
		if s.step.op == "update" {
			list = s.step.list
		}
		pass(s.step.wait)
		r.take(s.step)
	}
	r.refuse()
	if len(list) == 0 {
		list = addressNames[:1]
		r.Update(list, false)
	}
	for range 20 {
		r.ExitIdle()
		pass(150 * time.Second) // more than the longest backoff, 144 s
		for _, a := range addressNames {
			r.network(a, core.Ready)
			r.Health(a, core.Ready, nil)
		}
		if r.Take(); r.State().ConnectivityState == connectivity.Ready {
			return nil
		}
	}
	return fmt.Errorf("the policy stays %[2]v with the list %[1]s", strings.Join(list, " "), r.State().ConnectivityState)
}
