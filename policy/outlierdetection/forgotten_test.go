package outlierdetection

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/resolver"

	core "github.com/understudy-lb/understudy/internal/core/outlierdetection"
	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
)

func overflowConfig() core.Config {
	config := consecutiveConfig()
	config.MaxEjectionPercent, config.BelowOverflow = 100, true
	return config
}

func (h *harness) inner() *policy {
	for _, conn := range h.builder.built[0].conns {
		return conn.(*subConn).policy
	}
	h.t.Fatal("the child has no subchannel")
	return nil
}

func (h *harness) fail(endpoint string) {
	h.t.Helper()
	for range 5 {
		h.Call(endpoint, false)
	}
}

// When the child shuts down the subchannel of the only endpoint that is not ejected, the child still
// sees the ejection: it may connect to this endpoint again.
func TestSubchannelShutdown(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.Update(overflowConfig(), []string{"a", "b"})
		p := h.inner()
		subConnsOf := func(name string) []*subConn {
			for _, e := range p.core.Endpoints() {
				if e.Attached.name == name {
					return p.subConnsOf(e)
				}
			}
			return nil
		}
		h.fail("a")
		h.wantReceived("a TRANSIENT_FAILURE")
		if len(p.all()) != 2 || p.uncountedSubConns.Load() != 2 || len(subConnsOf("b")) != 1 {
			t.Fatalf("%d subchannels, %d not counted by their users, %d of b; want 2, 2, 1", len(p.all()), p.uncountedSubConns.Load(), len(subConnsOf("b")))
		}
		child := h.builder.built[0]
		removed := h.cc.SubConn("b")
		child.cc.RemoveSubConn(child.conns["b"])
		synctest.Wait()
		h.wantReceived()
		if !removed.IsShutdown() || len(p.all()) != 1 || p.uncountedSubConns.Load() != 1 || len(subConnsOf("b")) != 0 {
			t.Errorf("%d subchannels, %d not counted by their users, %d of b; want 1, 1, 0", len(p.all()), p.uncountedSubConns.Load(), len(subConnsOf("b")))
		}
		h.ready(removed)
		child.conns["b"].Shutdown()
		synctest.Wait()
		if h.wantReceived(); p.uncountedSubConns.Load() != 1 {
			t.Errorf("%d subchannels not counted by their users after a second Shutdown, want 1", p.uncountedSubConns.Load())
		}
	})
}

func TestQuietIntervalPublishesNothing(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.Update(overflowConfig(), []string{"a", "b"})
		before := len(h.cc.States())
		for i := range 10 {
			h.Call("a", true)
			h.Call("b", i%4 == 3)
			h.Advance(10 * time.Second)
		}
		if published := len(h.cc.States()) - before; published > 0 {
			t.Errorf("%d states were published in ten quiet intervals", published)
		}
	})
}

func TestUnchangedListStaysBound(t *testing.T) {
	ab, c := endpointsOf("a", "b"), endpointsOf("c")
	p := &policy{}
	for i, step := range []struct {
		given []resolver.Endpoint
		bound bool
	}{
		{nil, false}, {nil, true}, {ab, false}, {ab, true}, {append(ab[:1:1], ab[1], ab[0]), true}, {ab[:1], false}, {ab, false},
		{append(ab[1:2:2], ab[0]), false}, {ab, false}, {endpointsOf("a", "b"), false}, {append(ab[:1:1], c[0]), false},
		{append(ab[:1:1], c[0]), true},
	} {
		if p.assigned = p.list(step.given); p.bound != step.bound {
			t.Errorf("step %d: bound = %v for %v, want %v", i, p.bound, step.given, step.bound)
		}
	}
}

// A map of all endpoints by their keys is the model of the list.
func TestListIsLikeAMap(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	p, model := &policy{subConns: subConns{unbound: make(map[*subConn]struct{})}}, map[key]*endpoint{}
	var given []resolver.Endpoint
	for step := range 3000 {
		if random.IntN(4) > 0 { // otherwise, the same endpoints in memory
			given = nil
		}
		for range random.IntN(100) {
			e := endpointsOf(fmt.Sprint(random.IntN(150)))[0]
			if random.IntN(8) == 0 {
				e.Addresses = append(e.Addresses, resolver.Address{Addr: "b"}, resolver.Address{Addr: "a", ServerName: "n"})[random.IntN(4):]
			}
			given = append(given, e)
		}
		given = slices.Clone(given)
		if random.IntN(4) == 0 {
			random.Shuffle(len(given), func(i, j int) { given[i], given[j] = given[j], given[i] })
		}
		list := p.list(given)
		next, i := map[key]*endpoint{}, 0
		for _, e := range given {
			k, ok := hierarchy.KeyOf(e)
			if _, twice := next[k]; !ok || twice {
				continue
			}
			before := model[k]
			if isNew := slices.Contains(p.added, list[i]); list[i].Attached.key != k || before != nil && list[i] != before || isNew != (before == nil) {
				t.Fatalf("step %d: endpoint %d is not the one of %q before, or it counts as new", step, i, k)
			}
			next[k] = list[i]
			i++
		}
		for k, e := range model {
			if isRemoved := slices.Contains(p.removed, e); isRemoved != (next[k] == nil) {
				t.Fatalf("step %d: endpoint %q is removed: %v", step, k, isRemoved)
			}
		}
		if len(list) != i {
			t.Fatalf("step %d: the list has %d endpoints, want %d", step, len(list), i)
		}
		if model = next; !p.bound {
			p.bind(list)
		}
	}
}

// An endpoint behind a proxy stays the same if the proxy has another address now, even if it is far
// from its old place in the list.
func TestMovedBehindOtherProxyStaysSame(t *testing.T) {
	p := &policy{subConns: subConns{unbound: make(map[*subConn]struct{})}}
	update := func(proxy string, names ...string) []*endpoint {
		state := hierarchy.Seal(resolver.State{Endpoints: endpointsOf(names...)})
		state.Endpoints = slices.Clone(state.Endpoints)
		for i, name := range names {
			if name == "proxied" {
				state.Endpoints[i] = endpointsOf(proxy)[0]
			}
		}
		list := p.list(hierarchy.Unseal(state).Endpoints)
		p.bind(list)
		return list
	}
	var others []string
	for i := range 100 {
		others = append(others, fmt.Sprint("direct", i))
	}
	before := update("proxy:1", append([]string{"proxied"}, others...)...)
	after := update("proxy:2", append(others, "proxied")...)
	if after[len(others)] != before[0] {
		t.Error("the endpoint behind the proxy counts as new")
	}
}

// An update with one new endpoint may allocate only the list, the entry of the endpoint, a map to find it,
// and what has changed.
func TestListAllocatesOnlyNewEndpoints(t *testing.T) {
	const n = 10_000
	var names []string
	for i := range n {
		names = append(names, fmt.Sprint("endpoint", i))
	}
	given := endpointsOf(names...)
	other := slices.Clone(given)
	other[n/2] = endpointsOf("other")[0]
	p := &policy{}
	p.assigned = p.list(given)
	i := 0
	got := testing.AllocsPerRun(10, func() {
		i++
		p.assigned = p.list([][]resolver.Endpoint{given, other}[i%2])
	})
	if got > 6 {
		t.Errorf("%v allocations for a list with one new endpoint, want the list, the endpoint, two lists of changes, and what finds it", got)
	}
	if len(p.assigned) != n {
		t.Errorf("%d endpoints are listed, want %d", len(p.assigned), n)
	}
}

// A child may create a subchannel while the policy reads a new list. The race detector checks that
// this is safe.
func TestListChangesWhileSubchannelIsBound(t *testing.T) {
	proxied := func(port string) []resolver.Endpoint {
		var list []resolver.Endpoint
		for _, name := range []string{"a", "b"} {
			list = append(list, resolver.Endpoint{Addresses: []resolver.Address{{Addr: "proxy:" + port, ServerName: name}}})
		}
		return list
	}
	p := &policy{subConns: subConns{unbound: make(map[*subConn]struct{})}}
	p.bind(p.list(proxied("1")))
	s := &subConn{address: only(proxied("1")[0].Addresses)}
	bound := make(chan bool)
	go func() {
		p.mu.Lock()
		p.bindLocked(s)
		p.bindLocked(s)
		p.mu.Unlock()
		close(bound)
	}()
	p.list(proxied("1"))
	<-bound
	if e := s.endpoint.Load(); e == nil || e.Attached.name != "proxy:1" {
		t.Errorf("the subchannel belongs to %v, want the first endpoint", e)
	}
}
