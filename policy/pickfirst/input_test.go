package pickfirst

import (
	"testing"

	grpcpickfirst "google.golang.org/grpc/balancer/pickfirst"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/lb/stateattr"
	"github.com/understudy-lb/understudy/internal/testing/testlog"
)

var logged = testlog.CaptureWarnings()

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
