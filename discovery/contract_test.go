package discovery_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/testing/flat"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

func TestAnAnswerIsConfirmedWithoutRepeatingIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, cc := &scripted{}, &channel{}
		b := one(s)
		r := build(t, b, cc)
		_ = s.say("10.0.0.1:1")
		s.Fail(errors.New("down"))
		time.Sleep(2 * time.Hour)
		s.Confirm()
		r.Close()
		time.Sleep(50 * time.Minute)
		r = build(t, b, cc)
		s.Fail(errors.New("down"))
		r.Close()
		const state = `state 10.0.0.1:1["child0" "/"]`
		if got, want := cc.take(), state+"\n"+state; got != want {
			t.Errorf("channel saw\n%s\nwant\n%s", got, want)
		}
	})
}

// Confirm must have no effect before the source's first answer.
func TestNothingIsConfirmedThatTheSourceDidNotSay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, cc := &scripted{}, &channel{}
		b := one(s)
		r := build(t, b, cc)
		s.Confirm()
		if got := cc.take(); got != "" {
			t.Errorf("channel saw %q", got)
		}
		_ = s.say("10.0.0.1:1")
		r.Close()
		cc.take()
		for _, want := range []string{`state 10.0.0.1:1["child0" "/"]`, "error x: down"} {
			time.Sleep(40 * time.Minute)
			r = build(t, b, cc)
			s.Fail(errors.New("down"))
			s.Confirm()
			r.Close()
			if got := cc.take(); got != want {
				t.Errorf("channel saw %q, want %q", got, want)
			}
		}
	})
}

// A source's answer has no endpoint that can take calls, and then the source fails. The errors of
// calls must give both reasons. Confirm must remove the second one.
func TestToConfirmEndsAFailureThatCallsSee(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, cc := &scripted{}, &channel{}
		r := build(t, one(s), cc)
		defer r.Close()
		answer := flat.Answer(flat.Endpoint{Address: "10.0.0.1:1", Health: discovery.Unhealthy})
		answer.Why = "all pods are restarting"
		_ = s.Update(answer)
		s.Fail(errors.New("the API is away"))
		if got := cc.failure(); !strings.Contains(got, "away") {
			t.Errorf("calls fail with %q, want the failure", got)
		}
		s.Confirm()
		if got := cc.failure(); strings.Contains(got, "away") || !strings.Contains(got, answer.Why) {
			t.Errorf("calls fail with %q, want %s alone", got, answer.Why)
		}
	})
}

// A source has no result after 2 s. The text of Trying must be logged once.
func TestWhatIsAwaitedIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, cc := &scripted{}, &channel{}
		r := build(t, one(s), cc)
		defer r.Close()
		waits := func(text string, d time.Duration, want int) {
			t.Helper()
			s.Trying(text)
			line := "x: no answer yet: " + text
			before := logged.Count(line)
			time.Sleep(d)
			synctest.Wait()
			if n := logged.Count(line) - before; n != want {
				t.Errorf("%q was logged %d times within %v, want %d", line, n, d, want)
			}
		}
		waits("dialling the registry", 1900*time.Millisecond, 0)
		waits("waiting for its list", 1900*time.Millisecond, 0)
		waits("waiting for its list", 200*time.Millisecond, 1)
		waits("waiting for its list", time.Minute, 0)
		waits("reading its list", time.Second, 0)
		_ = s.say("10.0.0.1:1")
		waits("reading its list", time.Minute, 0)
	})
}

// The first of two sources has failed, and the second one has called Trying. The errors of calls
// must give both texts.
func TestCallsSeeWhatIsAwaitedBesideFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, cc := &scripted{}, &scripted{}, &channel{}
		r := build(t, of([]discovery.Mechanism{{Name: "a", Source: a}, {Name: "b", Source: b}}), cc)
		defer r.Close()
		a.Trying("looking up a.test")
		b.Fail(errors.New("no such host"))
		time.Sleep(11 * time.Second)
		if got, want := cc.take(), "error x: no part has an address: a: no answer yet: looking up a.test; b: no such host"; got != want {
			t.Errorf("channel saw %q, want %q", got, want)
		}
	})
}

func TestAMistakeIsShownAsOne(t *testing.T) {
	s, cc := &scripted{}, &channel{}
	r := build(t, one(s), cc)
	defer r.Close()
	s.Fail(fmt.Errorf("registry: %w", discovery.Mistake(errors.New("no service shop"))))
	if got, want := cc.take(), "error x: registry: no service shop (a mistake to correct: waiting will not help)"; got != want {
		t.Errorf("channel saw %q, want %q", got, want)
	}
	if err := s.say("10.0.0.1:1"); err != nil || !strings.HasPrefix(cc.take(), "state ") {
		t.Errorf("a later answer is refused: %v", err)
	}
	if discovery.Mistake(nil) != nil || discovery.Refused(nil) != nil {
		t.Error("nil became an error")
	}
}

// A failure that is marked with Refused must be counted in the metrics as a refused answer.
func TestAFailureThatRefusesAnAnswerIsCountedSo(t *testing.T) {
	metrics, s := &lbtest.Recorder{}, &scripted{}
	r, err := one(s).Build(target("x:///shop"), &channel{}, resolver.BuildOptions{MetricsRecorder: metrics})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	s.Fail(fmt.Errorf("registry: %w", discovery.Refused(errors.New("weight 1e99"))))
	if n := metrics.Export()["understudy.source.updates x:///shop x refused"]; n != 1 {
		t.Errorf("counts are %v, want it as refused", metrics.Export())
	}
}
