package pickfirst

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/balancer"
	grpcpickfirst "google.golang.org/grpc/balancer/pickfirst"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	core "github.com/understudy-lb/understudy/internal/core/pickfirst"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
)

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

// Attributes.Equal panics if an attribute cannot be compared. The policy must recover from this.
func TestHealthListenerAttributes(t *testing.T) {
	type key struct{}
	other, incomparable := endpoints("a"), endpoints("a")
	other.Attributes = other.Attributes.WithValue(key{}, 1)
	incomparable.Attributes = incomparable.Attributes.WithValue(key{}, []string{"x"})
	for _, c := range []struct {
		state resolver.State
		want  bool
	}{
		{endpoints("a"), false}, {other, false}, {incomparable, false}, {stateattr.EnableHealthListener(incomparable), true},
		{stateattr.EnableHealthListener(endpoints("a")), true}, {stateattr.EnableHealthListener(other), true},
		{grpcpickfirst.EnableHealthListener(endpoints("a")), true}, {grpcpickfirst.EnableHealthListener(other), true},
	} {
		for range 2 {
			if got := healthEnabled(c.state); got != c.want {
				t.Errorf("%v: %t, want %t", c.state.Attributes, got, c.want)
			}
		}
	}
}

func TestManyAddressesInOneEndpoint(t *testing.T) {
	for _, families := range [][]string{{"10.0.%d.%d:80"}, {"10.0.%d.%d:80", "[2001:db8::%x:%x]:80", "host-%d-%d"}} {
		const n = 10_000
		var e resolver.Endpoint
		for i := range n {
			a := fmt.Sprintf(families[i%len(families)], i/256, i%256)
			e.Addresses = append(e.Addresses, resolver.Address{Addr: a})
		}
		synctest.Test(t, func(t *testing.T) {
			r := newRecorder(balancer.Get(Name), stateattr.EnableHealthListener)
			r.policy.UpdateClientConnState(balancer.ClientConnState{ResolverState: resolver.State{Endpoints: []resolver.Endpoint{e}}})
			tried := 0
			for n := len(r.log); n > 0; n = len(r.log) {
				address, ok := strings.CutPrefix(r.log[n-1], "connect ")
				if !ok {
					break
				}
				tried++
				r.log = r.log[:0]
				r.Report(address, core.TransientFailure, errors.New("refused"))
			}
			want := []string{"publish TRANSIENT_FAILURE: all 10000 addresses failed, the last with: refused", "resolve"}
			if tried != n || !slices.Equal(r.log, want) {
				t.Errorf("tried %d addresses, then %q", tried, r.log)
			}
			r.policy.Close()
		})
	}
}
