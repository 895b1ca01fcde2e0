package pickfirst

import (
	"errors"
	"testing"

	"google.golang.org/grpc/balancer"
	grpcpickfirst "google.golang.org/grpc/balancer/pickfirst"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/lb/stateattr"
	"github.com/understudy-lb/understudy/internal/testing/testlog"
)

var logged = testlog.CaptureWarnings()

func TestEmptyListIsError(t *testing.T) {
	for name, s := range map[string]resolver.State{
		"nothing":                     {},
		"endpoints without addresses": {Endpoints: make([]resolver.Endpoint, 2)},
	} {
		cc, p := build(t)
		err := p.UpdateClientConnState(balancer.ClientConnState{ResolverState: s})
		if !errors.Is(err, balancer.ErrBadResolverState) {
			t.Errorf("%s: error %v, want ErrBadResolverState", name, err)
		}
		wantState(t, cc, connectivity.TransientFailure, "fail: no addresses: the resolver returned none, or none with a path to this policy")
	}
}

// Attributes.Equal panics if an attribute cannot be compared. The policy must recover from this, and
// log it once.
func TestHealthListenerAttributes(t *testing.T) {
	type key struct{}
	other, incomparable := endpoints("a"), endpoints("a")
	other.Attributes = other.Attributes.WithValue(key{}, 1)
	incomparable.Attributes = incomparable.Attributes.WithValue(key{}, []string{"x"})
	before := logged.Count("cannot be compared")
	for _, c := range []struct {
		state resolver.State
		want  bool
	}{
		{endpoints("a"), false}, {other, false}, {incomparable, false}, {grpcpickfirst.EnableHealthListener(incomparable), false}, {stateattr.EnableHealthListener(incomparable), true},
		{stateattr.EnableHealthListener(endpoints("a")), true}, {stateattr.EnableHealthListener(other), true},
		{grpcpickfirst.EnableHealthListener(endpoints("a")), true}, {grpcpickfirst.EnableHealthListener(other), true},
	} {
		for range 2 {
			if got := healthEnabled(c.state); got != c.want {
				t.Errorf("%v: %t, want %t", c.state.Attributes, got, c.want)
			}
		}
	}
	if n := logged.Count("cannot be compared") - before; n != 1 {
		t.Errorf("logged %d lines about an attribute that cannot be compared, want 1", n)
	}
}
