package page

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/experimental/balancer/weight"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
	"github.com/understudy-lb/understudy/internal/testing/flat"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
	"github.com/understudy-lb/understudy/policy/priority"
)

func TestHostileNamesAreEscapedAndTruncated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		evil := "<script>alert(1)</script>\x1b[31m\u202e\x00"
		s := &fakeSource{}
		var endpoints []flat.Endpoint
		for i := range 5 {
			endpoints = append(endpoints, newEndpoint(uint32(i), fmt.Sprint(evil, i, strings.Repeat("x", 10_000)), "a", 1))
		}
		openChannel(t, s, endpoints...)
		s.Receiver.Fail(errors.New(evil + strings.Repeat("y", 10_000)))
		synctest.Wait()
		time.Sleep(time.Second)
		c, page := channel(t)
		encoded, _ := json.Marshal(c)
		for _, text := range []string{page, string(encoded)} {
			if strings.ContainsAny(text, "\x1b\u202e\x00") {
				t.Errorf("a control character is not escaped:\n%s", text)
			}
			if len(text) > 40_000 {
				t.Errorf("names of 10,000 bytes result in %d bytes", len(text))
			}
		}
		if strings.Contains(page, "<script>") {
			t.Errorf("a name is not escaped:\n%s", page)
		}
		wantTexts(t, page, "&lt;script&gt;alert(1)&lt;/script&gt;", `\x1b[31m\u202e\x00`)
	})
}

func root(t testing.TB, cc *lbtest.ClientConn, name string, n int) (balancer.Balancer, balancer.ClientConnState) {
	t.Helper()
	builder := balancer.Get(priority.Name)
	config, err := builder.(balancer.ConfigParser).ParseConfig([]byte(`{"priorities": ["p"], "children": {"p": {"config": [
		{"understudy_weighted_target": {"targets": {
			"a": {"weight": 1, "childPolicy": [{"understudy_weighted_round_robin": {}}]},
			"b": {"weight": 3, "childPolicy": [{"understudy_weighted_round_robin": {}}]}}}}]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	var state resolver.State
	for i := range n {
		for _, locality := range []string{"a", "b"} {
			e := resolver.Endpoint{Addresses: []resolver.Address{{Addr: fmt.Sprintf("10.%d.%d.%s:443", i/250, i%250, locality)}}}
			e = weight.Set(e, weight.EndpointInfo{Weight: uint32(1 + i%7)})
			state.Endpoints = append(state.Endpoints, hierarchy.Set(e, "p", locality))
		}
	}
	state = stateattr.SetChannel(state, &stateattr.Channel{Target: name})
	p := builder.Build(cc, balancer.BuildOptions{Target: resolver.Target{URL: *mustParse(name)}})
	t.Cleanup(p.Close)
	return p, balancer.ClientConnState{BalancerConfig: config, ResolverState: state}
}

func TestManyEndpointsAreFolded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cc := &lbtest.ClientConn{}
		p, state := root(t, cc, "many:///"+t.Name(), 5000)
		if err := p.UpdateClientConnState(state); err != nil {
			t.Fatal(err)
		}
		for i, sc := range cc.SubConns() {
			sc.Report(connectivity.Connecting, nil)
			if i == 4321 {
				sc.Report(connectivity.TransientFailure, errors.New("this one is down"))
				continue
			}
			sc.Report(connectivity.Ready, nil)
			sc.ReportHealth(connectivity.Ready, nil)
		}
		settle()
		page := get(t, "")
		if n := strings.Count(page, "and 4980 READY more"); n != 2 {
			t.Fatalf("the page folds the endpoints of %d localities, want 2:\n%s", n, page)
		}
		wantTexts(t, page, "this one is down")
		allocations := testing.AllocsPerRun(10, func() {
			time.Sleep(pageLifetime + 1)
			get(t, "")
		})
		t.Logf("%d bytes in %v allocations", len(page), allocations)
		if len(page) > 1_000_000 || allocations > 100_000 {
			t.Errorf("the page has %d bytes and takes %v allocations, want less than 1 MB and 100,000", len(page), allocations)
		}
		if got := len(get(t, "?format=json&endpoints=3")); got > 20_000 {
			t.Errorf("three endpoints of each locality are %d bytes of JSON", got)
		}
	})
}

func TestStuckPolicyIsShownAsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cc := &lbtest.ClientConn{}
		p, state := root(t, cc, "stuck:///"+t.Name(), 2)
		if err := p.UpdateClientConnState(state); err != nil {
			t.Fatal(err)
		}
		settle()
		release := make(chan struct{})
		cc.OnUpdate(func(balancer.State) { <-release })
		go p.UpdateClientConnState(state)
		synctest.Wait()
		time.Sleep(12 * time.Second)
		page := get(t, "")
		wantTexts(t, page, "Busy for 12 s.", "10.0.1.a:443")
		close(release)
		cc.OnUpdate(nil)
		settle()
		if page := get(t, ""); strings.Contains(page, "Busy for") {
			t.Errorf("a policy is still busy:\n%s", page)
		}
	})
}

func TestPolicyStuckInFirstUpdateIsShownAsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cc := &lbtest.ClientConn{}
		p, state := root(t, cc, "stuck:///"+t.Name(), 2)
		release := make(chan struct{})
		cc.OnUpdate(func(balancer.State) { <-release })
		go p.UpdateClientConnState(state)
		synctest.Wait()
		time.Sleep(12 * time.Second)
		wantTexts(t, get(t, ""), t.Name(), "Busy for 12 s.")
		close(release)
		synctest.Wait()
	})
}
