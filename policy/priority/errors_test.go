package priority

import (
	"errors"
	"testing"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"

	"github.com/understudy-lb/understudy/internal/lb/shell"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

func TestErrorsOutsideUpdateAreNotKept(t *testing.T) {
	stubs := &lbtest.StubBuilder{PolicyName: "stub_errors"}
	stubs.OnUpdate = func(s *lbtest.Stub, _ balancer.ClientConnState) error {
		if s.ID() == "b" {
			return errors.New("no endpoints")
		}
		return nil
	}
	balancer.Register(stubs)
	p := newBuilder(Name).Build(&lbtest.ClientConn{}, balancer.BuildOptions{})
	defer p.Close()
	config := parse(`{"childRetention": "0s", "priorities": ["a", "b"], "children": {
		"a": {"config": [{"stub_errors": {"id": "a"}}]}, "b": {"config": [{"stub_errors": {"id": "b"}}]}}}`)
	if err := p.UpdateClientConnState(balancer.ClientConnState{BalancerConfig: config}); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		stubs.Get("a").Report(connectivity.TransientFailure, errors.New("refused"))
		stubs.Get("a").Report(connectivity.Ready, nil)
	}
	shell.PolicyOf(p).(*policy).Do(func() {})
	if n := len(stubs.Built()); n != 11 {
		t.Errorf("%d children were built, want a once and b ten times", n)
	}
	config = parse(`{"priorities": ["b"], "children": {"b": {"config": [{"stub_errors": {"id": "b"}}]}}}`)
	err := p.UpdateClientConnState(balancer.ClientConnState{BalancerConfig: config})
	if want := `priority: child "b" refused its update: no endpoints`; err == nil || err.Error() != want {
		t.Errorf("error = %v, want %s", err, want)
	}
}

// A child refuses an update and accepts the next one. The errors of calls must then contain the
// child's own error again.
func TestAcceptedUpdateClearsRefusal(t *testing.T) {
	cc := &lbtest.ClientConn{}
	var refusal error
	b, p, update := stubs(cc, func(*lbtest.Stub, balancer.ClientConnState) error { return refusal })
	defer p.Close()
	for i, step := range []struct {
		refusal error
		want    string
	}{
		{nil, "fail: no priority can take calls: p0 a: connection refused"},
		{errors.New("no good"), "fail: no priority can take calls: p0 a: refused its update: no good"},
		{nil, "fail: no priority can take calls: p0 a: connection refused"},
	} {
		refusal = step.refusal
		err := update("a")
		if (err != nil) != (refusal != nil) {
			t.Fatalf("update %d: error = %v, want %v", i, err, refusal)
		}
		if i == 0 {
			b.Get("a").Report(connectivity.TransientFailure, errors.New("connection refused"))
		}
		shell.PolicyOf(p).(*policy).Do(func() {})
		if got := lbtest.Pick(cc.State()); got != step.want {
			t.Errorf("update %d: calls get %q, want %q", i, got, step.want)
		}
	}
}
