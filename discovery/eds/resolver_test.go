package eds

import (
	"strings"
	"testing"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
	"github.com/understudy-lb/understudy/internal/testing/adstest"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

func TestState(t *testing.T) {
	c := build(t, "eds://"+serve(t, serveOnce)+"/c", given.Set("ServiceConfig", `{"methodConfig":[]}`))
	state := wait(t, "state", c.states)
	if len(state.Endpoints) != 1 || state.Endpoints[0].Addresses[0].Addr != "10.0.0.1:1" {
		t.Errorf("endpoints are %v, want 10.0.0.1:1", state.Endpoints)
	}
	if path := hierarchy.Path(state.Endpoints[0]); len(path) != 2 {
		t.Errorf("the path is %q, want a priority and a locality", path)
	}
	config := state.ServiceConfig.Config.(rawConfig).text
	for _, want := range []string{`"methodConfig":[]`, `"understudy_priority"`} {
		if !strings.Contains(config, want) {
			t.Errorf("service config %s lacks %s", config, want)
		}
	}
	// If a proxy is used, gRPC drops the attributes of endpoints, including the paths. Unseal must
	// restore the paths from the copy in the state.
	stripped := state
	stripped.Endpoints = []resolver.Endpoint{{Addresses: state.Endpoints[0].Addresses}}
	if got := hierarchy.Path(hierarchy.Unseal(stripped).Endpoints[0]); len(got) != 2 {
		t.Errorf("the state is not sealed: the path is %q", got)
	}
}

func TestInvalidResourceBeforeFirstAnswer(t *testing.T) {
	sendInvalid := func(s *adstest.Stream) error {
		cluster := adstest.Cluster("c", "10.0.0.1:1")
		cluster.Endpoints[0].Priority = 1
		s.Respond("1", "n", cluster)
		return s.Drain()
	}
	c := build(t, "eds://"+serve(t, sendInvalid)+"/c")
	if err := wait(t, "error", c.errors); !strings.Contains(err.Error(), `eds: no endpoints of cluster "c" from dns:///127.0.0.1`) || !strings.Contains(err.Error(), "priority 1 is used") {
		t.Errorf("error = %q, want the cluster, the server and the reason", err)
	}
}

func TestBuildErrors(t *testing.T) {
	disabled := resolver.BuildOptions{DisableServiceConfig: true}
	if _, err := given.Builder(Scheme).Build(target(t, "eds://h:1/c"), newChannel(), disabled); err == nil || !strings.Contains(err.Error(), "WithDisableServiceConfig") {
		t.Errorf("with service configs disabled: %v, want an error that names the option", err)
	}
	for _, test := range []struct {
		target string
		opts   []given.Option
		want   string
	}{
		{"eds://h/c", nil, `has the server "h"`},
		{"eds:///c", nil, "names no server, and neither does an xDS bootstrap (GRPC_XDS_BOOTSTRAP)"},
		{"eds://h:1/c", []given.Option{given.Set("ServiceConfig", `{"loadBalancingConfig":[]}`)}, "loadBalancingConfig is set by the resolver"},
	} {
		if got := buildError(t, test.target, test.opts...); !strings.Contains(got, test.want) {
			t.Errorf("%s: %s, want %q", test.target, got, test.want)
		}
	}
}

func TestCloseDuringUpdate(t *testing.T) {
	c := newChannel()
	c.done = make(chan struct{})
	t.Cleanup(func() { close(c.done) })
	c.states = make(chan resolver.State) // unbuffered, so that UpdateState blocks
	buildDone := make(chan struct{})     // closed when Build has returned
	script := func(s *adstest.Stream) error {
		<-buildDone
		return serveOnce(s)
	}
	r, err := given.Builder(Scheme).Build(target(t, "eds://"+serve(t, script)+"/c"), c, resolver.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	close(buildDone)
	r.ResolveNow(resolver.ResolveNowOptions{})
	closed := make(chan struct{})
	go func() {
		r.Close()
		close(closed)
	}()
	wait(t, "return of Close", closed)
}
