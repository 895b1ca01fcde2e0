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

func TestConfirmRenewsLastAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, cc := &fakeSource{}, &channel{}
		b := newSourceBuilder(s)
		r := build(t, b, cc)
		_ = s.sendAddresses("10.0.0.1:1")
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
func TestConfirmBeforeFirstAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, cc := &fakeSource{}, &channel{}
		b := newSourceBuilder(s)
		r := build(t, b, cc)
		s.Confirm()
		if got := cc.take(); got != "" {
			t.Errorf("channel saw %q", got)
		}
		_ = s.sendAddresses("10.0.0.1:1")
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

// A source sends an answer without a usable endpoint, and then reports a failure. The errors of
// calls must contain the reasons of the answer and of the failure. After Confirm, they must not
// contain the failure.
func TestConfirmClearsFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, cc := &fakeSource{}, &channel{}
		r := build(t, newSourceBuilder(s), cc)
		defer r.Close()
		answer := flat.Answer(flat.Endpoint{Address: "10.0.0.1:1", Health: discovery.Unhealthy})
		answer.Why = "all pods are restarting"
		_ = s.Update(answer)
		s.Fail(errors.New("the API is away"))
		if got := cc.failures(); !strings.Contains(got, "away") {
			t.Errorf("calls fail with %q, want the failure", got)
		}
		s.Confirm()
		if got := cc.failures(); strings.Contains(got, "away") || !strings.Contains(got, answer.Why) {
			t.Errorf("calls fail with %q, want %s alone", got, answer.Why)
		}
	})
}

// After a source has been waiting for 2 s, the text that it passed to Trying must be logged once.
func TestTryingIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, cc := &fakeSource{}, &channel{}
		r := build(t, newSourceBuilder(s), cc)
		defer r.Close()
		wantLogged := func(text string, d time.Duration, want int) {
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
		wantLogged("dialling the registry", 1900*time.Millisecond, 0)
		wantLogged("waiting for its list", 1900*time.Millisecond, 0)
		wantLogged("waiting for its list", 200*time.Millisecond, 1)
		wantLogged("waiting for its list", time.Minute, 0)
		wantLogged("reading its list", time.Second, 0)
		_ = s.sendAddresses("10.0.0.1:1")
		wantLogged("reading its list", time.Minute, 0)
	})
}

// One of two sources has called Trying, and the other one has failed. The errors of calls must
// contain both texts.
func TestCallErrorsIncludeTrying(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, cc := &fakeSource{}, &fakeSource{}, &channel{}
		r := build(t, newBuilder([]discovery.Mechanism{{Name: "a", Source: a}, {Name: "b", Source: b}}), cc)
		defer r.Close()
		a.Trying("looking up a.test")
		b.Fail(errors.New("no such host"))
		time.Sleep(11 * time.Second)
		if got, want := cc.take(), "error x: no entry has an address: a: no answer yet: looking up a.test; b: no such host"; got != want {
			t.Errorf("channel saw %q, want %q", got, want)
		}
	})
}

type refusedError struct{ error }

func (refusedError) Refused() bool { return true }

// A failure whose method Refused returns true must be counted in the metrics as a refused answer.
func TestRefusedIsCounted(t *testing.T) {
	metrics, s := &lbtest.Recorder{}, &fakeSource{}
	r, err := newSourceBuilder(s).Build(target("x:///shop"), &channel{}, resolver.BuildOptions{MetricsRecorder: metrics})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	s.Fail(fmt.Errorf("registry: %w", refusedError{errors.New("weight 1e99")}))
	if n := metrics.Export()["understudy.source.updates x:///shop x refused"]; n != 1 {
		t.Errorf("counts are %v, want it as refused", metrics.Export())
	}
}
