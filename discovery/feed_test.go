package discovery_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
	"github.com/understudy-lb/understudy/internal/testing/flat"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

// An answer that repeats the last one must not cause an update of the channel, and the service
// config must not be parsed again.
func TestRepeatedAnswers(t *testing.T) {
	cc, s := &channel{}, &fakeSource{}
	r := build(t, newSourceBuilder(s), cc)
	defer r.Close()
	plain := func(a string) discovery.Answer {
		attributes := attributes.New("what == cannot compare", []string{a})
		return discovery.Answer{Resolved: []resolver.Endpoint{{Addresses: []resolver.Address{{Addr: a}}, Attributes: attributes}}}
	}
	s.sendAddresses("10.0.0.1:1")
	if got, want := cc.take(), `state 10.0.0.1:1["child0" "/"]`; got != want {
		t.Fatalf("channel saw %q, want %q", got, want)
	}
	parsed := cc.parseCount
	for range 100 {
		s.sendAddresses("10.0.0.1:1")
	}
	if seen := cc.take(); seen != "" || cc.parseCount != parsed {
		t.Errorf("channel saw %q and parsed %d more, want nothing", seen, cc.parseCount-parsed)
	}
	s.sendAddresses("10.0.0.2:1")
	if cc.take() == "" || cc.parseCount != parsed {
		t.Errorf("parsed %d more for the same config", cc.parseCount-parsed)
	}
	s.Update(plain("10.0.0.3:1"))
	s.Update(plain("10.0.0.3:1"))
	if got := strings.Count(cc.take(), "state"); got != 2 {
		t.Errorf("%d updates, want 2", got)
	}
}

// A gRPC resolver may pass the same slice to UpdateState repeatedly and change it in between. Each
// of its answers must reach the channel.
func TestResolverReusesSlice(t *testing.T) {
	var inner resolver.ClientConn
	wrapped := buildFunc(func(cc resolver.ClientConn) { inner = cc })
	cc := &channel{}
	r := build(t, newSourceBuilder(discovery.FromResolver(wrapped, target("y:///z"), cc, resolver.BuildOptions{})), cc)
	defer r.Close()
	endpoints := []resolver.Endpoint{{Addresses: []resolver.Address{{Addr: "10.0.0.1:1"}}}}
	_ = inner.UpdateState(resolver.State{Endpoints: endpoints})
	endpoints[0].Addresses[0].Addr = "10.0.0.2:1"
	_ = inner.UpdateState(resolver.State{Endpoints: endpoints})
	endpoints[0] = resolver.Endpoint{Addresses: []resolver.Address{{Addr: "10.0.0.3:1"}}}
	_ = inner.UpdateState(resolver.State{Endpoints: endpoints})
	if got := strings.Count(cc.take(), "state"); got != 3 {
		t.Errorf("%d updates, want 3", got)
	}
	if err := inner.UpdateState(resolver.State{Endpoints: []resolver.Endpoint{}}); err == nil {
		t.Error("an answer without addresses is accepted, want an error, after which gRPC's resolver looks up the name again")
	}
}

type buildFunc func(resolver.ClientConn)

func (buildFunc) Scheme() string { return "building" }

func (b buildFunc) Build(_ resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) (resolver.Resolver, error) {
	b(cc)
	return noopResolver{}, nil
}

// The priorities of the first discovery mechanism come before those of the second (gRFC A37). Each
// mechanism must have child names, re-resolution and an authority of its own.
func TestPrioritiesOfSeveralMechanisms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cc := &channel{}
		pushing, withResolveNow := &fakeSource{}, &fakeResolvingSource{}
		resolveNows := 0
		withResolveNow.onResolveNow = func() { resolveNows++ }
		r := build(t, newBuilder([]discovery.Mechanism{
			{Name: "shop", Source: pushing, Authority: "shop.example.com"},
			{Name: "backup:443", Source: withResolveNow, Authority: "backup"},
		}), cc)
		defer r.Close()
		if err := withResolveNow.Update(discovery.Answer{Resolved: []resolver.Endpoint{{Addresses: []resolver.Address{{Addr: "10.1.0.1:1", ServerName: "forged"}}}}}); err != nil {
			t.Fatal(err)
		}
		if seen := cc.take(); seen != "" {
			t.Errorf("channel saw %q before the first mechanism answered", seen)
		}
		if err := pushing.Update(flat.Answer(
			flat.Endpoint{Address: "10.0.0.1:1", Locality: "us-east/a"},
			flat.Endpoint{Address: "10.0.0.2:1", Locality: "us-east/b"},
			flat.Endpoint{Address: "10.0.0.3:1", Priority: 1},
		)); err != nil {
			t.Fatal(err)
		}
		want := `state 10.0.0.1:1/shop.example.com["shop/child0" "us-east/a"] 10.0.0.2:1/shop.example.com["shop/child0" "us-east/b"]` +
			` 10.0.0.3:1/shop.example.com["shop/child1" "/"] 10.1.0.1:1/backup["backup:443" "/"]`
		if got := cc.take(); got != want {
			t.Errorf("channel saw\n%s\nwant\n%s", got, want)
		}
		if !strings.Contains(cc.config(), `"priorities":["shop/child0","shop/child1","backup:443"]`) {
			t.Errorf("config %s does not have all priorities in order", cc.config())
		}
		about := stateattr.ChannelOf(hierarchy.Unseal(cc.lastState))
		if about.Target != "x:///y" || about.Names["shop/child0"] != "shop: us-east/a, us-east/b" ||
			about.Names["shop/child1"] != "shop: priority 1" || about.Names["backup:443"] != "backup:443" {
			t.Errorf("the channel is %+v", about)
		}
		for child, ignores := range map[string]string{"shop/child0": "true", "shop/child1": "true", "backup:443": "false"} {
			_, config, _ := strings.Cut(cc.config(), `"`+child+`":`)
			if _, after, _ := strings.Cut(config, `"ignoreReresolutionRequests":`); !strings.HasPrefix(after, ignores) {
				t.Errorf("%s ignores re-resolution: not %s, in %s", child, ignores, cc.config())
			}
		}
		for _, child := range []string{"shop/child0", "backup:443", "nothing"} {
			stateattr.ResolveNow(cc.lastState)(child, false)
		}
		synctest.Wait()
		if resolveNows != 1 {
			t.Errorf("the second source was asked %d times, want once: by its own child", resolveNows)
		}
		r.ResolveNow(resolver.ResolveNowOptions{})
		synctest.Wait()
		if resolveNows != 1 {
			t.Errorf("the second source was asked %d times, want once: the channel does not say whose connection failed", resolveNows)
		}
	})
}

// Each failure must be logged once, however often it is repeated, and the last answer must stay in
// use.
func TestFailures(t *testing.T) {
	cc, s := &channel{}, &fakeSource{}
	r := build(t, newSourceBuilder(s), cc)
	defer r.Close()
	const logLine = "x: the failure of TestFailures; the previous endpoints stay in use"
	before := logged.Count(logLine)
	for range 3 {
		s.Fail(errors.New("the failure of TestFailures"))
	}
	if got, want := cc.take(), "error x: the failure of TestFailures"; got != want {
		t.Errorf("channel saw %q, want %q, once", got, want)
	}
	s.sendAddresses("10.0.0.1:1")
	s.Fail(errors.New("the failure of TestFailures"))
	s.Fail(errors.New("the failure of TestFailures"))
	s.sendAddresses("10.0.0.1:1")
	s.Fail(errors.New("the failure of TestFailures"))
	if got, want := cc.take(), `state 10.0.0.1:1["child0" "/"]`; got != want {
		t.Errorf("channel saw %q, want %q", got, want)
	}
	if n := logged.Count(logLine) - before; n != 2 {
		t.Errorf("logged %d times, want twice", n)
	}
}

func TestInvalidAnswer(t *testing.T) {
	cc, s := &channel{}, &fakeSource{}
	r := build(t, newSourceBuilder(s), cc)
	defer r.Close()
	err := s.sendAddresses("10.0.0.1:1", "10.0.0.1")
	if err == nil || !strings.Contains(err.Error(), `endpoint 1 of locality "/" in priority 0: address "10.0.0.1" given, want host:port, or unix:/path`) {
		t.Errorf("Update = %v, want the error", err)
	}
	if got := cc.take(); got != "error x: "+err.Error() {
		t.Errorf("channel saw %q, want the same", got)
	}
}

// If no discovery mechanism has a usable endpoint, the log and the channel's error must name each
// mechanism and its reason.
func TestErrorNamesEmptyMechanisms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cc, first, second := &channel{}, &fakeSource{}, &fakeSource{}
		r := build(t, newBuilder([]discovery.Mechanism{{Name: "emptied.one", Source: first}, {Name: "emptied.two", Source: second}}), cc)
		defer r.Close()
		logged.Take()
		first.Update(flat.Empty())
		second.Update(discovery.Answer{Empty: true, Why: "nothing is deployed"})
		const noEndpoints, notDeployed = "there are no endpoints", "nothing is deployed"
		if got, want := stateattr.ChannelOf(cc.lastState).Empty, "x:///y: emptied.one: "+noEndpoints+"; emptied.two: "+notDeployed; got != want {
			t.Errorf("the reason for an empty channel is %q, want %q", got, want)
		}
		for _, want := range []string{"x: emptied.one: " + noEndpoints + ": no calls can be made", "x: emptied.two: " + notDeployed + ": no calls can be made"} {
			if logged.Count(want) != 1 {
				t.Errorf("no line of the log has %q", want)
			}
		}
		second.sendAddresses("10.0.0.1:1")
		if got := stateattr.ChannelOf(cc.lastState).Empty; got != "" {
			t.Errorf("with an endpoint the reason for an empty channel is %q", got)
		}
	})
}

func TestMechanismChildNamesAreUnique(t *testing.T) {
	cc := &channel{}
	sources := map[string]*fakeSource{"a": {}, "a/child0": {}, "a'": {}, "a'/child0/child0": {}}
	var mechanisms []discovery.Mechanism
	for _, name := range []string{"a", "a/child0", "a'", "a'/child0/child0"} {
		mechanisms = append(mechanisms, discovery.Mechanism{Name: name, Source: sources[name]})
	}
	r := build(t, newBuilder(mechanisms), cc)
	defer r.Close()
	sources["a"].sendAddresses("10.0.0.1:1")
	sources["a'"].sendAddresses("10.0.0.2:1")
	for i, name := range []string{"a/child0", "a'/child0/child0"} {
		e := resolver.Endpoint{Addresses: []resolver.Address{{Addr: []string{"10.0.0.3:1", "10.0.0.4:1"}[i]}}}
		sources[name].Update(discovery.Answer{Resolved: []resolver.Endpoint{e}})
	}
	children := make(map[string]bool)
	for _, e := range hierarchy.Unseal(cc.lastState).Endpoints {
		children[hierarchy.Path(e)[0]] = true
	}
	if len(children) != 4 {
		t.Errorf("four mechanisms have the children %v", children)
	}
}

func TestFailureTextOmitsLocalPort(t *testing.T) {
	cc, s := &channel{}, &fakeSource{}
	r := build(t, newSourceBuilder(s), cc)
	defer r.Close()
	for _, port := range []string{"127.0.0.1:40001->", "127.0.0.1:40002->", "[::1]:40003->"} {
		s.Fail(errors.New("read udp " + port + "127.0.0.1:53: i/o timeout"))
	}
	if got, want := cc.take(), "error x: read udp 127.0.0.1:53: i/o timeout"; got != want {
		t.Errorf("channel saw %q, want %q, once", got, want)
	}
}

func TestServerNames(t *testing.T) {
	answer := flat.Answer(flat.Endpoint{Address: "10.0.0.1:1"}, flat.Endpoint{Address: "10.0.0.2:1"})
	answer.Priorities[0].Localities[0].Endpoints[0].Hostname = "forged"
	for _, test := range []struct {
		trust     bool
		authority string
		want      string
	}{
		{false, "", `10.0.0.1:1/good["a/child0" "/"] 10.0.0.2:1/good["a/child0" "/"]`},
		{true, "", `10.0.0.1:1/forged["a/child0" "/"] 10.0.0.2:1/good["a/child0" "/"]`},
		{false, "given", `10.0.0.1:1["a/child0" "/"] 10.0.0.2:1["a/child0" "/"]`},
	} {
		cc, s := &channel{}, &fakeSource{}
		r := build(t, newBuilder([]discovery.Mechanism{{Name: "a", Source: s, Authority: "good", TrustNames: test.trust}}, given.Set("Authority", test.authority)), cc)
		s.Update(answer)
		if got := cc.take(); got != "state "+test.want {
			t.Errorf("trust %v, authority %q: channel saw\n%s\nwant\nstate %s", test.trust, test.authority, got, test.want)
		}
		r.Close()
	}
}
