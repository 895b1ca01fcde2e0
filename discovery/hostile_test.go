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

// The tests below cover answers during Start, and Close during an update. They run in synctest
// bubbles, which report a deadlock.

func TestAnswersFromStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cc := &channel{}
		first := &fakeSource{onStart: func(s *fakeSource) { s.sendAddresses("10.0.0.1:1"); s.sendAddresses("10.0.0.2:1") }}
		second := &fakeSource{onStart: func(s *fakeSource) {
			if updates := cc.take(); updates != "" {
				t.Errorf("the channel saw %q before all sources were started", updates)
			}
			s.Fail(errors.New("not yet"))
		}}
		r := build(t, newBuilder([]discovery.Mechanism{{Name: "a", Source: first}, {Name: "b", Source: second}}), cc)
		defer r.Close()
		if got, want := cc.take(), `state 10.0.0.2:1["a/child0" "/"]`; got != want {
			t.Errorf("channel saw %q, want %q", got, want)
		}
	})
}

// If a source cannot be started, only its own discovery mechanism must fail. If there is no other
// mechanism, Build must fail.
func TestStartErrorFailsOneMechanism(t *testing.T) {
	failing := &fakeSource{startError: "no such thing"}
	working := &fakeSource{onStart: func(s *fakeSource) { s.sendAddresses("10.0.0.1:1") }}
	for name, mechanisms := range map[string][]discovery.Mechanism{
		"first": {{Name: "b", Source: failing}, {Name: "a", Source: working}},
		"last":  {{Name: "a", Source: working}, {Name: "b", Source: failing}},
	} {
		cc, warned := &channel{}, logged.Count("x: b: no such thing")
		r := build(t, newBuilder(mechanisms), cc)
		if got, want := cc.take(), `state 10.0.0.1:1["a/child0" "/"]`; got != want {
			t.Errorf("%s: channel saw %q, want %q", name, got, want)
		}
		if logged.Count("x: b: no such thing") != warned+1 {
			t.Errorf("%s: the log does not have the reason once", name)
		}
		r.Close()
	}
	cc := &channel{}
	if _, err := newSourceBuilder(failing).Build(target("x:///y"), cc, resolver.BuildOptions{}); err == nil || err.Error() != "x: no such thing" {
		t.Errorf("Build = %v, want the reason", err)
	}
	r := build(t, newBuilder([]discovery.Mechanism{{Name: "a", Source: failing}, {Name: "b", Source: failing}}), cc)
	defer r.Close()
	if got, want := cc.take(), "error x: no entry has an address: a: no such thing; b: no such thing"; got != want {
		t.Errorf("channel saw %q, want %q", got, want)
	}
}

func TestCloseDuringUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cc, s := &channel{}, &fakeSource{}
		r := build(t, newSourceBuilder(s), cc)
		cc.onUpdate = func(resolver.State) {
			s.sendAddresses("10.0.0.2:1") // queued until the running update ends
			r.Close()
			s.sendAddresses("10.0.0.3:1")
		}
		s.sendAddresses("10.0.0.1:1")
		if got, want := cc.take(), `state 10.0.0.1:1["child0" "/"]`; got != want {
			t.Errorf("channel saw %q, want %q", got, want)
		}
	})
}

func TestReentrantCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cc, s := &channel{}, &fakeResolvingSource{}
		s.onResolveNow = func() { s.sendAddresses("10.0.0.2:1") }
		r := build(t, newSourceBuilder(s), cc)
		defer r.Close()
		s.sendAddresses("10.0.0.1:1")
		cc.onUpdate = func(resolver.State) { r.ResolveNow(resolver.ResolveNowOptions{}) }
		r.ResolveNow(resolver.ResolveNowOptions{})
		synctest.Wait()
		want := `state 10.0.0.1:1["child0" "/"]` + "\n" + `state 10.0.0.2:1["child0" "/"]`
		if got := cc.take(); got != want {
			t.Errorf("channel saw %q, want %q", got, want)
		}
	})
}

func TestReresolutionIsNotIgnored(t *testing.T) {
	cc, s := &channel{}, &fakeResolvingSource{onResolveNow: func() {}}
	r := build(t, newSourceBuilder(s), cc)
	defer r.Close()
	s.sendAddresses("10.0.0.1:1")
	if !strings.Contains(cc.config(), `"ignoreReresolutionRequests":false`) {
		t.Errorf("config %s ignores requests for re-resolution", cc.config())
	}
}

// Concurrent answers must not cause overlapping updates of the channel. The race detector checks
// this, too.
func TestConcurrentReports(t *testing.T) {
	cc, s := &channel{}, &fakeSource{}
	busy := make(chan struct{}, 1)
	cc.onUpdate = func(resolver.State) {
		select {
		case busy <- struct{}{}:
			<-busy
		default:
			t.Error("two updates overlap")
		}
	}
	r := build(t, newSourceBuilder(s), cc)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for j := range 100 {
				s.sendAddresses(fmt.Sprintf("10.0.%d.%d:1", i, j))
				s.Fail(errors.New("now and then"))
				r.ResolveNow(resolver.ResolveNowOptions{})
			}
		})
	}
	wg.Wait()
	s.sendAddresses("10.9.9.9:1")
	if got, want := cc.take(), `state 10.9.9.9:1["child0" "/"]`; !strings.HasSuffix(got, want) {
		t.Errorf("the last update is %q, want %q", got[max(0, len(got)-len(want)):], want)
	}
	r.Close()
}

// gRPC must get the errors of a source without their status code, because an error with a status
// ends wait-for-ready calls.
func TestErrorsDoNotWrapStatus(t *testing.T) {
	statusErr := fmt.Errorf("the registry says: %w", status.Error(codes.PermissionDenied, "go away"))
	cc, s := &plainChannel{}, &fakeSource{}
	r, err := newSourceBuilder(s).Build(target("x:///y"), cc, resolver.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	s.Fail(statusErr)
	for _, err := range append(cc.errors, s.Update(discovery.Answer{})) {
		if _, ok := status.FromError(err); ok || err == nil {
			t.Errorf("%v is a status", err)
		}
	}
	_, err = given.NewBuilder("x", func(*discovery.Target) ([]discovery.Mechanism, error) { return nil, statusErr }).
		Build(target("x:///y"), cc, resolver.BuildOptions{})
	if _, ok := status.FromError(err); ok || err.Error() != "x: "+statusErr.Error() {
		t.Errorf("Build = %v, want the text of the error, and no status", err)
	}
}

type plainChannel struct {
	channel
	errors []error
}

func (c *plainChannel) ReportError(err error) { c.errors = append(c.errors, err) }
