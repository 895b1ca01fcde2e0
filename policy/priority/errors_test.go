package priority

import (
	"errors"
	"testing"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

func TestErrorsOutsideUpdateAreNotKept(t *testing.T) {
	p := newStubbed(t, func(s *lbtest.Stub, _ balancer.ClientConnState) error {
		if s.ID() == "b" {
			return errors.New("no endpoints")
		}
		return nil
	})
	if err := p.update(resolver.State{}, `"childRetention": "0s",`, "a", "b"); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		p.report("a", connectivity.TransientFailure, errors.New("refused"))
		p.report("a", connectivity.Ready, nil)
	}
	if n := len(p.Built()); n != 11 {
		t.Errorf("%d children were built, want a once and b ten times", n)
	}
	err := p.update(resolver.State{}, "", "b")
	if want := `priority: child "b" refused its update: no endpoints`; err == nil || err.Error() != want {
		t.Errorf("error = %v, want %s", err, want)
	}
}

// A child refuses an update and accepts the next one. The errors of calls must then contain the
// child's own error again.
func TestAcceptedUpdateClearsRefusal(t *testing.T) {
	var refusal error
	p := newStubbed(t, func(*lbtest.Stub, balancer.ClientConnState) error { return refusal })
	for i, step := range []struct {
		refusal error
		want    string
	}{
		{nil, "fail: no priority can take calls: p0 a: connection refused"},
		{errors.New("no good"), "fail: no priority can take calls: p0 a: refused its update: no good"},
		{nil, "fail: no priority can take calls: p0 a: connection refused"},
	} {
		refusal = step.refusal
		err := p.update(resolver.State{}, "", "a")
		if (err != nil) != (refusal != nil) {
			t.Fatalf("update %d: error = %v, want %v", i, err, refusal)
		}
		if i == 0 {
			p.report("a", connectivity.TransientFailure, errors.New("connection refused"))
		}
		if got := lbtest.Pick(p.cc.State()); got != step.want {
			t.Errorf("update %d: calls get %q, want %q", i, got, step.want)
		}
	}
}
