package hierarchy

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/resolver"
)

func endpoint(addresses ...string) resolver.Endpoint {
	var e resolver.Endpoint
	for _, a := range addresses {
		e.Addresses = append(e.Addresses, resolver.Address{Addr: a})
	}
	return e
}

func describe(groups map[string][]resolver.Endpoint) string {
	var names []string
	for name := range groups {
		names = append(names, name)
	}
	slices.Sort(names)
	s := ""
	for _, name := range names {
		s += name + ":"
		for _, e := range groups[name] {
			s += fmt.Sprintf(" %s path=%q", e.Addresses[0].Addr, Path(e))
		}
		s += "\n"
	}
	return s
}

// This is the example of gRFC A56, "Hierarchical Addresses".
func TestGroupSplitsLevelByLevel(t *testing.T) {
	endpoints := []resolver.Endpoint{
		Set(endpoint("10.0.0.1:80"), "child0", "localityA"),
		Set(endpoint("10.0.0.2:80"), "child0", "localityB"),
		Set(endpoint("10.0.0.3:80"), "child1", "localityC"),
		Set(endpoint("10.0.0.4:80"), "child1", "localityD"),
	}
	first := Group(endpoints)
	want := `child0: 10.0.0.1:80 path=["localityA"] 10.0.0.2:80 path=["localityB"]
child1: 10.0.0.3:80 path=["localityC"] 10.0.0.4:80 path=["localityD"]
`
	if got := describe(first); got != want {
		t.Errorf("first level:\n%swant:\n%s", got, want)
	}
	want = "localityC: 10.0.0.3:80 path=[]\nlocalityD: 10.0.0.4:80 path=[]\n"
	if got := describe(Group(first["child1"])); got != want {
		t.Errorf("second level:\n%swant:\n%s", got, want)
	}
	if got := Path(endpoints[0]); !slices.Equal(got, []string{"child0", "localityA"}) {
		t.Errorf("Group modified its input: path is now %q", got)
	}
}

// Splitting at several levels and then stripping the paths must give the same as a copy of each
// endpoint at each level, however the children are mixed.
func TestSplitIsLikeCopying(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	elements := []string{"a", "b", ""}
	for range 300 {
		var endpoints []resolver.Endpoint
		for i := range random.IntN(20) {
			e := endpoint(fmt.Sprint(i))
			if n := random.IntN(5); n < 4 {
				e = Set(e, elements[random.IntN(3)], elements[random.IntN(3)], elements[random.IntN(3)])
				e = Set(e, Path(e)[:n]...)
			}
			other := e
			other.Attributes = e.Attributes.WithValue("other", i)
			endpoints = append(endpoints, e, other)
		}
		given := slices.Clone(endpoints)
		groups, below := Split(resolver.State{Endpoints: endpoints})
		for _, first := range elements {
			below.Endpoints = groups[first]
			inner, bottom := Split(below)
			for _, second := range elements {
				var want []resolver.Endpoint
				for _, e := range given {
					if p := Path(e); len(p) > 1 && p[0] == first && p[1] == second {
						want = append(want, Set(e, p[2:]...))
					}
				}
				bottom.Endpoints = inner[second]
				got, copied := Strip(bottom), Group(Group(given)[first])
				for _, list := range [][]resolver.Endpoint{got.Endpoints, copied[second]} {
					if !slices.EqualFunc(list, want, func(a, b resolver.Endpoint) bool {
						return a.Attributes.Equal(b.Attributes) && slices.EqualFunc(a.Addresses, b.Addresses, resolver.Address.Equal)
					}) {
						t.Fatalf("%q, %q: %v, want %v", first, second, list, want)
					}
				}
				if again := Strip(got); len(again.Endpoints) > 0 && &again.Endpoints[0] != &got.Endpoints[0] {
					t.Fatal("elements are removed twice")
				}
			}
		}
		if !slices.EqualFunc(endpoints, given, func(a, b resolver.Endpoint) bool {
			return a.Attributes == b.Attributes && slices.EqualFunc(a.Addresses, b.Addresses, resolver.Address.Equal)
		}) {
			t.Fatal("the given endpoints have changed")
		}
	}
}

func TestGroupOmitsEndpointsWithoutPath(t *testing.T) {
	groups := Group([]resolver.Endpoint{endpoint("a"), Set(endpoint("b")), Set(endpoint("c"), "x")})
	if got, want := describe(groups), "x: c path=[]\n"; got != want {
		t.Errorf("groups = %q, want %q", got, want)
	}
}

func TestPathReturnsNilOrCopy(t *testing.T) {
	if got := Path(endpoint("a")); got != nil {
		t.Errorf("path of an endpoint without one = %#v, want nil", got)
	}
	if got := Path(Set(endpoint("a"))); got == nil || len(got) != 0 {
		t.Errorf("path of an endpoint at its leaf = %#v, want empty and not nil", got)
	}
	elements := []string{"x", "y"}
	e := Set(endpoint("a"), elements...)
	elements[0] = "changed by the caller"
	Path(e)[1] = "changed by the reader"
	if got := Path(e); !slices.Equal(got, []string{"x", "y"}) {
		t.Errorf("path = %q, want [x y]", got)
	}
}

func TestAttributesWithPathsCompare(t *testing.T) {
	a, b, c := Set(endpoint("a"), "x"), Set(endpoint("b"), "x"), Set(endpoint("c"), "y")
	if !a.Attributes.Equal(b.Attributes) {
		t.Error("equal paths compare as different")
	}
	if a.Attributes.Equal(c.Attributes) {
		t.Error("different paths compare as equal")
	}
}

// throughProxy changes a state in the same way as grpc-go's delegating resolver if HTTPS_PROXY is
// set. It does not replace addresses in noProxy.
func throughProxy(state resolver.State, proxies []string, noProxy ...string) resolver.State {
	var endpoints []resolver.Endpoint
	for _, e := range state.Endpoints {
		var addresses []resolver.Address
		for _, a := range e.Addresses {
			if slices.Contains(noProxy, a.Addr) {
				addresses = append(addresses, a)
				continue
			}
			for _, p := range proxies {
				addresses = append(addresses, resolver.Address{Addr: p, Attributes: attributes.New("connect", a.Addr)})
			}
		}
		endpoints = append(endpoints, resolver.Endpoint{Addresses: addresses})
	}
	state.Endpoints = endpoints
	return state
}

func TestUnsealRestoresPathsBehindProxy(t *testing.T) {
	two := endpoint("192.0.2.1:1", "10.0.0.1:1", "192.0.2.2:1")
	two.Addresses[0].ServerName = "a"
	two.Addresses[1].ServerName = "b"
	two.Addresses[2].ServerName = "c"
	sent := resolver.State{Endpoints: []resolver.Endpoint{Set(two, "p0"), Set(endpoint("192.0.2.3:1"), "p1")}}

	got := Unseal(throughProxy(Seal(sent), []string{"proxy1", "proxy2"}, "10.0.0.1:1"))

	if want := "p0: proxy1 path=[]\np1: proxy1 path=[]\n"; describe(Group(got.Endpoints)) != want {
		t.Errorf("groups = %q, want %q", describe(Group(got.Endpoints)), want)
	}
	var addresses []string
	for _, a := range got.Endpoints[0].Addresses {
		addresses = append(addresses, fmt.Sprintf("%s/%s/%v", a.Addr, a.ServerName, a.Attributes.Value("connect")))
	}
	want := []string{"proxy1/a/192.0.2.1:1", "proxy2/a/192.0.2.1:1", "10.0.0.1:1/b/<nil>", "proxy1/c/192.0.2.2:1", "proxy2/c/192.0.2.2:1"}
	if !slices.Equal(addresses, want) {
		t.Errorf("addresses = %q\nwant %q", addresses, want)
	}
	if got := Addresses(got.Endpoints[1])[0].Addr; got != "192.0.2.3:1" {
		t.Errorf("the original address of the second endpoint is %s, want 192.0.2.3:1", got)
	}
	if state := Unseal(got); state.Attributes.Value(sealKey{}).(*sealed) != nil {
		t.Error("the sealed copy is still there after Unseal")
	}
}

func TestUnsealIgnoresOtherStates(t *testing.T) {
	withPaths := resolver.State{Endpoints: []resolver.Endpoint{Set(endpoint("a"), "x")}}
	changed := Seal(withPaths)
	changed.Endpoints = []resolver.Endpoint{Set(endpoint("b"), "y")}
	if got := describe(Group(Unseal(changed).Endpoints)); got != "y: b path=[]\n" {
		t.Errorf("endpoints that carry paths were replaced: %s", got)
	}
	grown := Seal(withPaths)
	grown.Endpoints = []resolver.Endpoint{endpoint("a"), endpoint("b")}
	if got := Unseal(grown).Endpoints; len(got) != 2 || Path(got[0]) != nil {
		t.Errorf("paths were guessed although the number of endpoints differs: %v", got)
	}
	if got := Unseal(withPaths).Endpoints; &got[0] != &withPaths.Endpoints[0] {
		t.Error("a state that was never sealed was copied")
	}
}
