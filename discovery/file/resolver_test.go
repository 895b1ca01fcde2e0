package file

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/experimental/balancer/weight"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
	"github.com/understudy-lb/understudy/internal/testing/given"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

const oneLocality = `
endpoints:
- locality: {region: us-east, zone: a}
  load_balancing_weight: 3
  lb_endpoints:
  - endpoint: {address: {socket_address: {address: 192.0.2.1, port_value: 443}}}
    load_balancing_weight: 2
  - endpoint: {address: {pipe: {path: /run/b.sock}}}
`

func TestState(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	write(t, path, oneLocality)
	channel := watchFile(t, path, given.Set("ServiceConfig", `{"methodConfig": []}`))
	state := <-channel.states
	want := `192.0.2.1:443["child0" "us-east/a"] unix:/run/b.sock["child0" "us-east/a"]`
	if got := describeState(state); got != want {
		t.Errorf("state = %s, want %s", got, want)
	}
	if got := weight.FromEndpoint(state.Endpoints[0]).Weight; got != 2 {
		t.Errorf("weight = %d, want 2", got)
	}
	json := lbtest.StateJSON(state, state.ServiceConfig.Config.(config).json)
	if !strings.HasPrefix(json, `{"loadBalancingConfig":[{"understudy_priority":{`) || !strings.HasSuffix(json, `],"methodConfig":[]}`) {
		t.Errorf("service config = %s", json)
	}
	state.Endpoints = slices.Clone(state.Endpoints) // what Seal keeps must not be modified
	for i := range state.Endpoints {
		state.Endpoints[i].Attributes = nil
	}
	if got := describeState(hierarchy.Unseal(state)); got != want {
		t.Errorf("behind a proxy the state is %s, want %s", got, want)
	}
}

func TestLocalitiesWithoutTrafficAreLogged(t *testing.T) {
	path := newPath(t)
	idleLocality := onePort(1) + "- locality: {region: idle}\n  load_balancing_weight: 0\n"
	write(t, path, idleLocality+"- locality: {region: on}\n  load_balancing_weight: 1\n")
	watchFile(t, path).next(t)
	logged.Wait(t, testTimeout, path+`:4:3: locality "idle" of priority 0 has weight 0 and gets no traffic`)
	logged.Wait(t, testTimeout, path+`:2:3: locality "/" of priority 0 has no weight and gets no traffic`)
}

func TestBuildErrors(t *testing.T) {
	noOptions := resolver.BuildOptions{}
	for _, test := range []struct {
		target  string
		builder resolver.Builder
		opts    resolver.BuildOptions
		want    string
	}{
		{"file:endpoints.yaml", given.Builder(Scheme), noOptions, `target "file:endpoints.yaml" lacks the slashes after the scheme, want file:///`},
		{"file://etc/endpoints.yaml", given.Builder(Scheme), noOptions, `names the host "etc" (write three slashes before a path), want file:///`},
		{"file://localhost/endpoints.yaml", given.Builder(Scheme), noOptions, `names the host "localhost"`},
		{"file:///a#b", given.Builder(Scheme), noOptions, `has a fragment, want none (in a name, # is written %23)`},
		{"file:///", given.Builder(Scheme), noOptions, "has no path"},
		{"file:", given.Builder(Scheme), noOptions, "has no path"},
		{"file:///a?weight=1", given.Builder(Scheme), noOptions, `has the unknown parameter "weight"`},
		{"file:///a?authority=", given.Builder(Scheme), noOptions, "must have exactly one value for authority"},
		{"file:///a?authority=a&authority=b", given.Builder(Scheme), noOptions, "must have exactly one value for authority"},
		{"file:///a?%zz", given.Builder(Scheme), noOptions, "has a query that does not parse"},
		{"file:///a", given.Builder(Scheme), resolver.BuildOptions{DisableServiceConfig: true}, "in the service config, which this channel disables"},
		{"file:///a", given.Builder(Scheme, given.Set("ServiceConfig", "[]")), noOptions, "file: service config: want a JSON object"},
		{"file:///a", given.Builder(Scheme, given.Set("ServiceConfig", `{"loadBalancingConfig":[]}`)), noOptions, "loadBalancingConfig is set by the resolver"},
	} {
		_, err := test.builder.Build(target(t, test.target), newFakeChannel(), test.opts)
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), "file: ") {
			t.Errorf("Build(%s) = %v\nwant … %s", test.target, err, test.want)
		}
	}
	channel := newFakeChannel()
	channel.parseErr = errors.New("gRPC rejects it")
	_, err := given.Builder(Scheme).Build(target(t, "file:///a"), channel, noOptions)
	if err == nil || err.Error() != "file: service config: gRPC rejects it" {
		t.Errorf("Build = %v, want what gRPC says about the service config", err)
	}
}

func TestAuthority(t *testing.T) {
	overrider := given.Builder(Scheme)
	for text, want := range map[string]string{
		"file:///etc/checkout.yaml":                          "checkout",
		"file:///etc/checkout.example.com.json":              "checkout.example.com",
		"file:///etc/.yaml":                                  ".yaml",
		"file:///etc/check%20out":                            "check%20out",
		"file:///etc/e.yaml?authority=api.example.com:8443":  "api.example.com:8443",
		"file:///etc/e.yaml?authority=%5B2001:db8::1%5D:443": "[2001:db8::1]:443",
		"file:///etc/e.yaml?authority=a/b":                   "a%2Fb",
		"file:///etc/e.yaml?cluster=a%20b":                   "a%20b",
		"file:///etc/e.yaml?cluster=a&authority=b":           "b",
	} {
		if got := overrider.OverrideAuthority(target(t, text)); got != want {
			t.Errorf("authority of %s = %q, want %q", text, got, want)
		}
	}
}

// If a policy returns ErrBadResolverState, the log must not report that the answer was refused,
// because a priority without endpoints may be intended.
func TestBadResolverStateIsNotLogged(t *testing.T) {
	for updateErr, want := range map[error]int{balancer.ErrBadResolverState: 0, errors.New("another"): 1} {
		path := newPath(t)
		write(t, path, onePort(1))
		channel := newFakeChannel()
		channel.updateErr = fmt.Errorf("answer to %s: %w", path, updateErr)
		r, err := given.Builder(Scheme).Build(target(t, "file://"+path), channel, resolver.BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		channel.expect(t, 1)
		replace(t, path, onePort(2))
		channel.expect(t, 2)
		r.Close()
		if got := logged.Count("answer to " + path); min(got, 1) != want {
			t.Errorf("%v: logged %d times, want %d", updateErr, got, want)
		}
	}
}
