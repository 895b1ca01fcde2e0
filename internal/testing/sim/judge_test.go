package sim

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
)

// judgeHarness has a world with two priorities of one endpoint each. Tests record invented calls in
// it.
type judgeHarness struct {
	t *testing.T
	w *World
}

const firstTier, secondTier = "10.0.0.1:443", "10.0.0.2:443"

func newJudgeHarness(t *testing.T) judgeHarness {
	values := timing{maxBackoff: 10 * time.Second, keepalive: 20 * time.Second, keepaliveTimeout: 5 * time.Second}
	w := &World{Log: newLog(), settings: settings{failoverTimeout: defaultFailoverTimeout, timing: values}, conditions: make(map[string]*condition)}
	w.network, w.judge = NewNetwork(func(string, ...any) {}), newJudge(w)
	for _, address := range []string{firstTier, secondTier} {
		l, err := w.network.Listen(address)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.network.Dial(context.Background(), address); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		w.conditions[address] = &condition{up: true}
	}
	w.addresses = []string{firstTier, secondTier}
	w.judge.updated(EndpointSet{flat([]string{firstTier}), flat([]string{secondTier})})
	sleep(time.Hour)
	return judgeHarness{t, w}
}

func (j judgeHarness) calls(n int, to string, succeed bool) {
	var err error
	if !succeed {
		err = errors.New("failed")
	}
	for range n {
		sleep(time.Second)
		j.w.judge.calls++
		j.w.sentTo(to)
		at := time.Now()
		j.w.attemptEnded(to, at, err)
		j.w.judge.callEnded(&call{start: at, number: j.w.judge.calls}, to, at, err)
	}
}

func (j judgeHarness) setCode(address string, code codes.Code) {
	sleep(time.Second)
	j.w.conditions[address].code = code
	j.w.judge.backendChanged(address)
}

func (j judgeHarness) wantBroken(n int) {
	j.t.Helper()
	if broken := j.w.Log.Broken(); len(broken) != n {
		j.t.Errorf("%d rules are broken, want %d: %q", len(broken), n, broken)
	}
}

// While calls to the second priority succeed, the first priority may get the calls that show its
// failure, and then only probes.
func TestAvoidableFailuresBreakRule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJudgeHarness(t)
		j.calls(20, firstTier, true)
		j.setCode(firstTier, codes.Internal)
		j.calls(failuresToNotice, firstTier, false)
		for range 20 {
			j.calls(10, secondTier, true)
			j.calls(1, firstTier, false)
		}
		j.wantBroken(0)
		j.calls(10, firstTier, false)
		j.wantBroken(1)
	})
}

// Failed calls break no rule while all priorities fail. They also break no rule until the channel
// has had enough time to notice that another priority works again.
func TestUnavoidableFailuresBreakNoRule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJudgeHarness(t)
		j.setCode(secondTier, codes.Internal)
		j.calls(failuresToNotice, secondTier, false)
		j.setCode(firstTier, codes.Internal)
		j.calls(1000, firstTier, false)
		j.setCode(secondTier, codes.OK)
		j.calls(100, firstTier, false)
		j.wantBroken(0)
		sleep(time.Hour)
		j.calls(5, firstTier, false)
		j.wantBroken(1)
	})
}

func TestUnsentCallBreaksRule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJudgeHarness(t)
		j.calls(50, firstTier, true)
		j.w.judge.callEnded(&call{start: time.Now()}, "", time.Time{}, errors.New("unavailable"))
		j.wantBroken(1)
		j.setCode(firstTier, codes.Internal)
		j.calls(3, secondTier, true)
		j.w.judge.callEnded(&call{start: time.Now()}, "", time.Time{}, errors.New("unavailable"))
		j.wantBroken(1)
	})
}
