package failover

import (
	"net/url"
	"strings"
	"testing"

	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/lb/stateattr"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

func TestBuildErrors(t *testing.T) {
	for _, test := range []struct {
		target resolver.Target
		opts   resolver.BuildOptions
		option given.Option
		want   string
	}{
		{target("a"), resolver.BuildOptions{DisableServiceConfig: true}, nil, "which this channel disables"},
		{target(""), resolver.BuildOptions{}, nil, ""},
		{target("bad"), resolver.BuildOptions{}, nil, `"fake:bad": it cannot be built`},
		{resolver.Target{URL: url.URL{Scheme: Scheme, Opaque: "a:1"}}, resolver.BuildOptions{}, nil, "lacks the slashes after the scheme"},
		{target("a"), resolver.BuildOptions{}, given.Set("ServiceConfig", "{"), "want a JSON object"},
		{target("a"), resolver.BuildOptions{}, given.Set("ServiceConfig", `{"loadBalancingPolicy":"x"}`), "loadBalancingPolicy is set by the resolver"},
	} {
		f := newFakeBuilder()
		f.failingName = "bad"
		f.onBuild = func(r *fakeResolver) { r.answer("10.0.0.1:1") }
		options := []given.Option{given.Sources(WithResolvers(f))}
		if test.option != nil {
			options = append(options, test.option)
		}
		cc := &channel{}
		r, err := given.Builder(Scheme, options...).Build(test.target, cc, test.opts)
		if test.want == "" {
			if err != nil {
				t.Errorf("Build(%v): %v", test.target, err)
				continue
			}
			r.Close()
			continue
		}
		if err == nil || !strings.HasPrefix(err.Error(), "failover: ") || !strings.Contains(err.Error(), test.want) {
			t.Errorf("Build(%v) = %v\nwant an error with %q", test.target, err, test.want)
		}
		if updates := cc.take(); updates != "" {
			t.Errorf("Build(%v) failed and sent the channel %q", test.target, updates)
		}
		if len(f.resolvers) > 0 && f.take() != "closed a\n" {
			t.Errorf("Build(%v) failed and did not close what it had built", test.target)
		}
	}
}

func TestEndpointAttributes(t *testing.T) {
	type key struct{}
	given := attributes.New(key{}, "kept")
	f, cc := newFakeBuilder(), &channel{}
	r, err := build(f, cc, "a")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	state := resolver.State{Endpoints: []resolver.Endpoint{
		{Addresses: []resolver.Address{{Addr: "10.0.0.1:1", ServerName: "from DNS"}, {Addr: "10.0.0.2:1"}}, Attributes: given},
		{},
	}}
	if err := f.resolvers["a"].cc.UpdateState(state); err != nil {
		t.Fatal(err)
	}
	if a := state.Endpoints[0]; a.Addresses[0].ServerName != "from DNS" || a.Attributes != given {
		t.Errorf("the resolver's endpoint is now %v", a)
	}
	if len(cc.lastState.Endpoints) != 1 {
		t.Fatalf("sent %v, want the one endpoint with addresses", cc.lastState.Endpoints)
	}
	sent := cc.lastState.Endpoints[0]
	if sent.Attributes.Value(key{}) != "kept" || sent.Addresses[0].ServerName != "a" || sent.Addresses[1].ServerName != "a" {
		t.Errorf("sent %v, want the endpoint's attribute and the mechanism's server name", sent)
	}
	if stateattr.ResolveNow(cc.lastState) == nil {
		t.Error("the state has no ResolveNow function")
	}
}

// Older resolvers send addresses instead of endpoints, or call NewAddress.
func TestAddressesWithoutEndpoints(t *testing.T) {
	type key struct{}
	f, cc := newFakeBuilder(), &channel{}
	r, err := build(f, cc, "a")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	f.resolvers["a"].cc.NewAddress([]resolver.Address{
		{Addr: "10.0.0.1:1", BalancerAttributes: attributes.New(key{}, "moved")},
		{Addr: "10.0.0.2:1"},
	})
	if got, want := cc.take(), "state fake:a [10.0.0.1:1/a 10.0.0.2:1/a]\n"; got != want {
		t.Fatalf("channel saw %q, want %q", got, want)
	}
	e := cc.lastState.Endpoints[0]
	if e.Attributes.Value(key{}) != "moved" || e.Addresses[0].BalancerAttributes != nil {
		t.Errorf("endpoint %v, want the balancer attributes of the address as its own", e)
	}
}
