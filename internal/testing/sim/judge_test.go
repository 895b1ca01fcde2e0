package sim

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
)

// judged has two priorities with one endpoint each. The tests make up its calls.
type judged struct {
	t *testing.T
	w *World
}

const firstTier, secondTier = "10.0.0.1:443", "10.0.0.2:443"

func newJudged(t *testing.T) judged {
	drawn := timing{maxBackoff: 10 * time.Second, keepalive: 20 * time.Second, keepaliveTimeout: 5 * time.Second}
	w := &World{Log: newLog(), settings: settings{failover: failoverTime, timing: drawn}, conditions: make(map[string]*condition)}
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
	w.judge.updated(Truth{flat([]string{firstTier}), flat([]string{secondTier})})
	pass(time.Hour)
	return judged{t, w}
}

func (j judged) calls(n int, to string, succeed bool) {
	var err error
	if !succeed {
		err = errors.New("failed")
	}
	for range n {
		pass(time.Second)
		j.w.judge.made++
		j.w.sentTo(to)
		at := time.Now()
		j.w.attemptEnded(to, at, err)
		j.w.judge.ended(&call{start: at, made: j.w.judge.made}, to, at, err)
	}
}

func (j judged) turn(address string, code codes.Code) {
	pass(time.Second)
	j.w.conditions[address].answer = code
	j.w.judge.turned(address)
}

func (j judged) wants(n int) {
	j.t.Helper()
	if broken := j.w.Log.Broken(); len(broken) != n {
		j.t.Errorf("%d rules are broken, want %d: %q", len(broken), n, broken)
	}
}

// One priority fails and another one answers. The first one may get the calls that show its
// failure, and then only trial calls.
func TestCallsThatNeedNotFailAreJudged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJudged(t)
		j.calls(20, firstTier, true)
		j.turn(firstTier, codes.Internal)
		j.calls(noticed, firstTier, false)
		for range 20 {
			j.calls(10, secondTier, true)
			j.calls(1, firstTier, false)
		}
		j.wants(0)
		j.calls(mostTokens, firstTier, false)
		j.wants(1)
	})
}

// Failed calls break no rule while no priority answers, or before the channel can know that another
// priority answers again.
func TestCallsThatMustFailAreNotJudged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJudged(t)
		j.turn(secondTier, codes.Internal)
		j.calls(noticed, secondTier, false)
		j.turn(firstTier, codes.Internal)
		j.calls(1000, firstTier, false)
		j.turn(secondTier, codes.OK)
		j.calls(100, firstTier, false)
		j.wants(0)
		pass(time.Hour)
		j.calls(5, firstTier, false)
		j.wants(1)
	})
}

// Calls may move when timers fire or endpoints connect, but not back and forth.
func TestCallsThatGoToAndFroAreJudged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJudged(t)
		for range 2 {
			j.calls(3, firstTier, true)
			j.calls(3, secondTier, true)
		}
		j.wants(0)
		j.calls(3, firstTier, true)
		j.wants(1)
	})
}

func TestCallsThatWaitAreJudged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJudged(t)
		j.calls(50, firstTier, true)
		j.w.judge.ended(&call{start: time.Now()}, "", time.Time{}, errors.New("unavailable"))
		j.wants(1)
		j.turn(firstTier, codes.Internal)
		j.calls(3, secondTier, true)
		j.w.judge.ended(&call{start: time.Now()}, "", time.Time{}, errors.New("unavailable"))
		j.wants(1)
	})
}
