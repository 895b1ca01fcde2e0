package discovery_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/status"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

// A source answers during Start, and is closed during an update (row E5 of docs/scenarios.md). If
// this deadlocked, the synctest bubble would fail.

func TestAnswersFromInsideStartComeAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cc := &channel{}
		first := &scripted{inStart: func(s *scripted) { s.say("10.0.0.1:1"); s.say("10.0.0.2:1") }}
		second := &scripted{inStart: func(s *scripted) {
			if seen := cc.take(); seen != "" {
				t.Errorf("the channel saw %q before all sources were started", seen)
			}
			s.Fail(errors.New("not yet"))
		}}
		r := build(t, of([]discovery.Mechanism{{Name: "a", Source: first}, {Name: "b", Source: second}}), cc)
		defer r.Close()
		if got, want := cc.take(), `state 10.0.0.2:1["a/child0" "/"]`; got != want {
			t.Errorf("channel saw %q, want %q", got, want)
		}
	})
}

// A source cannot be started. Only its own discovery mechanism must fail. If it is the only one,
// Build must fail.
func TestASourceThatDoesNotStartFailsItsPartAlone(t *testing.T) {
	bad := &scripted{refuses: "no such thing"}
	good := &scripted{inStart: func(s *scripted) { s.say("10.0.0.1:1") }}
	for name, parts := range map[string][]discovery.Mechanism{
		"first": {{Name: "b", Source: bad}, {Name: "a", Source: good}},
		"last":  {{Name: "a", Source: good}, {Name: "b", Source: bad}},
	} {
		cc, warned := &channel{}, logged.Count("x: b: no such thing")
		r := build(t, of(parts), cc)
		if got, want := cc.take(), `state 10.0.0.1:1["a/child0" "/"]`; got != want {
			t.Errorf("%s: channel saw %q, want %q", name, got, want)
		}
		if logged.Count("x: b: no such thing") != warned+1 {
			t.Errorf("%s: the log does not have the reason once", name)
		}
		r.Close()
	}
	cc := &channel{}
	if _, err := one(bad).Build(target("x:///y"), cc, resolver.BuildOptions{}); err == nil || err.Error() != "x: no such thing" {
		t.Errorf("Build = %v, want the reason", err)
	}
	r := build(t, of([]discovery.Mechanism{{Name: "a", Source: bad}, {Name: "b", Source: bad}}), cc)
	defer r.Close()
	if got, want := cc.take(), "error x: no part has an address: a: no such thing; b: no such thing"; got != want {
		t.Errorf("channel saw %q, want %q", got, want)
	}
}

// A channel leaves idle mode and its source cannot be started. The channel must use the stored
// answer.
func TestASourceThatDoesNotStartAgain(t *testing.T) {
	s := &scripted{inStart: func(s *scripted) { s.say("10.0.0.1:1") }}
	b, cc := one(s), &channel{}
	build(t, b, cc).Close()
	before := cc.take()
	s.refuses = "no such thing any more"
	defer build(t, b, cc).Close()
	if got := cc.take(); got != before {
		t.Errorf("channel saw %q, want %q again", got, before)
	}
}

func TestNothingComesAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cc, s := &channel{}, &scripted{}
		r := build(t, one(s), cc)
		s.say("10.0.0.1:1")
		cc.take()
		r.Close()
		r.Close()
		s.say("10.0.0.2:1")
		s.say("not an address")
		s.Fail(errors.New("late"))
		s.Update(discovery.Answer{})
		r.ResolveNow(resolver.ResolveNowOptions{})
		synctest.Wait()
		if seen := cc.take(); seen != "" || s.closed != 1 {
			t.Errorf("the channel saw %q, the source was closed %d times; want nothing, and once", seen, s.closed)
		}
	})
}

func TestCloseFromInsideAnUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cc, s := &channel{}, &scripted{}
		r := build(t, one(s), cc)
		cc.onUpdate = func(resolver.State) {
			s.say("10.0.0.2:1") // waits in the queue, because an update is running
			r.Close()
			s.say("10.0.0.3:1")
		}
		s.say("10.0.0.1:1")
		if got, want := cc.take(), `state 10.0.0.1:1["child0" "/"]`; got != want {
			t.Errorf("channel saw %q, want %q", got, want)
		}
	})
}

func TestCallsBackFromInsideACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cc, s := &channel{}, &resolving{}
		s.onAsk = func() { s.say("10.0.0.2:1") }
		r := build(t, one(s), cc)
		defer r.Close()
		s.say("10.0.0.1:1")
		cc.onUpdate = func(resolver.State) { r.ResolveNow(resolver.ResolveNowOptions{}) }
		r.ResolveNow(resolver.ResolveNowOptions{})
		synctest.Wait()
		want := `state 10.0.0.1:1["child0" "/"]` + "\n" + `state 10.0.0.2:1["child0" "/"]`
		if got := cc.take(); got != want {
			t.Errorf("channel saw %q, want %q", got, want)
		}
	})
}

func TestRequestsForReresolutionAreObeyed(t *testing.T) {
	cc, s := &channel{}, &resolving{onAsk: func() {}}
	r := build(t, one(s), cc)
	defer r.Close()
	s.say("10.0.0.1:1")
	if !strings.Contains(cc.config(), `"ignoreReresolutionRequests":false`) {
		t.Errorf("config %s ignores requests for re-resolution", cc.config())
	}
}

// Answers arrive at the same time. The updates of the channel must not overlap, which the race
// detector checks.
func TestManyCallsAtOnce(t *testing.T) {
	cc, s := &channel{}, &scripted{}
	busy := make(chan struct{}, 1)
	cc.onUpdate = func(resolver.State) {
		select {
		case busy <- struct{}{}:
			<-busy
		default:
			t.Error("two updates overlap")
		}
	}
	r := build(t, one(s), cc)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for j := range 100 {
				s.say(fmt.Sprintf("10.0.%d.%d:1", i, j))
				s.Fail(errors.New("now and then"))
				r.ResolveNow(resolver.ResolveNowOptions{})
			}
		})
	}
	wg.Wait()
	s.say("10.9.9.9:1")
	if got, want := cc.take(), `state 10.9.9.9:1["child0" "/"]`; !strings.HasSuffix(got, want) {
		t.Errorf("the last update is %q, want %q", got[max(0, len(got)-len(want)):], want)
	}
	r.Close()
}

// An error of a source must reach gRPC without its status code, because a status error would end
// wait-for-ready calls (decision 13 of docs/scenarios.md).
func TestNoErrorWrapsAStatus(t *testing.T) {
	final := fmt.Errorf("the registry says: %w", status.Error(codes.PermissionDenied, "go away"))
	cc, s := &plainChannel{}, &scripted{}
	r, err := one(s).Build(target("x:///y"), cc, resolver.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	s.Fail(final)
	for _, err := range append(cc.errors, s.Update(discovery.Answer{})) {
		if _, ok := status.FromError(err); ok || err == nil {
			t.Errorf("%v is a status", err)
		}
	}
	_, err = given.NewBuilder("x", func(*discovery.Target) ([]discovery.Mechanism, error) { return nil, final }).
		Build(target("x:///y"), cc, resolver.BuildOptions{})
	if _, ok := status.FromError(err); ok || err.Error() != "x: "+final.Error() {
		t.Errorf("Build = %v, want the text of the error, and no status", err)
	}
}

type plainChannel struct {
	channel
	errors []error
}

func (c *plainChannel) ReportError(err error) { c.errors = append(c.errors, err) }
