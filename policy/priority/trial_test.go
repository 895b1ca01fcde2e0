package priority

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/base"
	"google.golang.org/grpc/connectivity"

	"github.com/understudy-lb/understudy/internal/lb/shell"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

type talliedPicker struct{ picks int }

func (c *talliedPicker) Pick(balancer.PickInfo) (balancer.PickResult, error) {
	c.picks++
	return balancer.PickResult{}, nil
}

func (c *talliedPicker) Failure() error { return errors.New("no") }

func (c *talliedPicker) Tier() shell.Tier { return shell.Tier{Condition: shell.Emptied} }

func makeCalls(t *testing.T, picker balancer.Picker, n int, every time.Duration) {
	t.Helper()
	for range n {
		time.Sleep(every)
		if _, err := picker.Pick(balancer.PickInfo{}); err != nil {
			t.Fatal(err)
		}
	}
}

func newTrialPicker(inUse balancer.Picker, others ...balancer.Picker) *trialPicker {
	p := &trialPicker{Picker: inUse}
	for _, other := range others {
		p.children = append(p.children, &trialChild{trials: newTrials(), picker: other, interval: 10 * time.Second})
	}
	return p
}

// With many calls, one call in 101 must be a trial, and at least one call in each interval. With
// few calls, one call in eleven must be a trial.
func TestTrialFrequency(t *testing.T) {
	for name, test := range map[string]struct {
		calls, least, most int
		every              time.Duration
	}{
		"200 calls a second": {200 * 600, 120000 / 101, 120000/101 + 1, 5 * time.Millisecond},
		"2 calls a second":   {2 * 600, 55, 60, 500 * time.Millisecond},
		"a call each 11 s":   {330, 29, 30, 11 * time.Second},
		"a call in a minute": {330, 29, 30, time.Minute},
		"only ten calls":     {10, 0, 0, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inUse, first, second := &talliedPicker{}, &talliedPicker{}, &talliedPicker{}
				p := newTrialPicker(inUse, first, second)
				makeCalls(t, p, test.calls, test.every)
				for _, c := range []*talliedPicker{first, second} {
					if c.picks < test.least || c.picks > test.most {
						t.Errorf("%d of %d calls were trials, want %d to %d", c.picks, test.calls, test.least, test.most)
					}
				}
				if inUse.picks != test.calls-first.picks-second.picks {
					t.Errorf("%d of %d calls went to the child in use", inUse.picks, test.calls)
				}
				if shell.FailureOf(p) == nil || shell.TierOf(p).Condition != shell.Emptied {
					t.Error("the picker does not return the Failure and Tier of the child in use")
				}
			})
		})
	}
}

func TestWaitingCallsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other := &talliedPicker{}
		p := newTrialPicker(base.NewErrPicker(balancer.ErrNoSubConnAvailable), other)
		time.Sleep(time.Minute)
		for range 10 {
			if _, err := p.Pick(balancer.PickInfo{}); !errors.Is(err, balancer.ErrNoSubConnAvailable) {
				t.Fatalf("a call got %v, want it to wait", err)
			}
		}
		makeCalls(t, p, 1, 0)
		if other.picks != 1 {
			t.Error("the eleventh call was not a trial")
		}
	})
}

// gRPC picks again for a waiting call whenever the picker is replaced. The call must be counted
// only once.
func TestWaitingCallIsCountedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cc := &lbtest.ClientConn{}
		b, p, update := stubs(cc, nil)
		defer p.Close()
		if err := update("a", "b"); err != nil {
			t.Fatal(err)
		}
		broken := &talliedPicker{}
		b.Get("a").CC.UpdateState(readyWith(&halfOpen{broken}))
		synctest.Wait()
		b.Get("b").CC.UpdateState(readyWith(&numberedPicker{Picker: &talliedPicker{}}))
		synctest.Wait()
		time.Sleep(time.Minute)
		for range 20 {
			b.Get("b").Report(connectivity.Connecting, nil)
			synctest.Wait()
			for range 2 {
				if _, err := cc.State().Picker.Pick(balancer.PickInfo{}); !errors.Is(err, balancer.ErrNoSubConnAvailable) {
					t.Fatalf("a call got %v, want it to wait", err)
				}
			}
		}
		b.Get("b").CC.UpdateState(readyWith(&numberedPicker{Picker: &talliedPicker{}}))
		synctest.Wait()
		if makeCalls(t, cc.State().Picker, 10, 0); broken.picks > 0 {
			t.Error("one of the first ten calls was a trial")
		}
		if makeCalls(t, cc.State().Picker, 1, 0); broken.picks != 1 {
			t.Error("the eleventh call was not a trial")
		}
	})
}

func TestTrialPickFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inUse := &talliedPicker{}
		p := newTrialPicker(inUse, base.NewErrPicker(errors.New("no")))
		makeCalls(t, p, 200, time.Second)
		if inUse.picks != 200 {
			t.Errorf("%d of 200 calls went to the child in use", inUse.picks)
		}
	})
}

// A child that was in use must get its first trial after ten calls and one interval, even if the
// picker is replaced.
func TestTrialsOutlivePicker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cc := &lbtest.ClientConn{}
		b, p, update := stubs(cc, nil)
		defer p.Close()
		if err := update("a", "b"); err != nil {
			t.Fatal(err)
		}
		broken, healthy := &talliedPicker{}, &talliedPicker{}
		b.Get("a").CC.UpdateState(readyWith(healthy))
		b.Get("a").CC.UpdateState(readyWith(&halfOpen{broken}))
		synctest.Wait()
		b.Get("b").CC.UpdateState(readyWith(healthy))
		for i := range 110 {
			b.Get("a").CC.UpdateState(readyWith(&halfOpen{broken}))
			b.Get("b").CC.UpdateState(readyWith(&numberedPicker{healthy, i}))
			synctest.Wait()
			makeCalls(t, cc.State().Picker, 1, time.Second)
			if i == 9 && broken.picks > 0 {
				t.Error("one of the first ten calls was a trial")
			}
		}
		if broken.picks != 10 {
			t.Errorf("%d of 110 calls were trials, want 10", broken.picks)
		}
	})
}

func readyWith(picker balancer.Picker) balancer.State {
	return balancer.State{ConnectivityState: connectivity.Ready, Picker: picker}
}

type halfOpen struct{ *talliedPicker }

func (halfOpen) Tier() shell.Tier {
	return shell.Tier{Condition: shell.HalfOpen, Interval: 10 * time.Second, ReadyShare: 1}
}

type numberedPicker struct {
	balancer.Picker
	number int
}

func TestTrialsDoNotAllocate(t *testing.T) {
	p := newTrialPicker(&talliedPicker{}, &talliedPicker{})
	if n := testing.AllocsPerRun(1000, func() { _, _ = p.Pick(balancer.PickInfo{}) }); n > 0 {
		t.Errorf("%v allocations per pick, want 0", n)
	}
}

func BenchmarkPickWithTrials(b *testing.B) {
	p := newTrialPicker(&noopPicker{}, &noopPicker{})
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			_, _ = p.Pick(balancer.PickInfo{})
		}
	})
}

type noopPicker struct{}

func (noopPicker) Pick(balancer.PickInfo) (balancer.PickResult, error) {
	return balancer.PickResult{}, nil
}
