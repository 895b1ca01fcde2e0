package discovery_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

type shelf struct{ name string }

func withShelf(name string) given.Option {
	return given.Sources(discovery.OwnOption(func(s *shelf) { s.name += name }))
}

// newLookupBuilder returns a builder whose source looks up names. Each time it parses a target, it
// writes the resulting refresh interval, removeAfter and source options to result.
func newLookupBuilder(result *string, opts ...given.Option) given.Resolvers {
	return given.NewBuilder("in", func(t *discovery.Target) ([]discovery.Mechanism, error) {
		r := t.Refresh(discovery.Refresh{Every: 7 * time.Second, RemoveAfter: 3})
		*result = fmt.Sprint(r.Every, " ", r.RemoveAfter, " ", discovery.OwnOptions(t, shelf{}).name, " in ", t.Channel.Endpoint())
		return []discovery.Mechanism{{Source: &fakeSource{}, Authority: "its-own"}}, nil
	}, opts...)
}

// Each option of lookups must be read from the first of these that sets it: the nested target's
// parameters, the target's parameters, the program, the nested target's builder, the source's
// defaults.
func TestOptionsOfNestedTarget(t *testing.T) {
	for _, test := range []struct {
		nestedQuery, query string
		inner, outer       []given.Option
		want               string
	}{
		{want: "7s 3  in list"},
		{inner: []given.Option{withShelf("a"), given.Set("Refresh", 8*time.Second)}, want: "8s 3 a in list"},
		{
			inner: []given.Option{withShelf("a"), given.Set("Refresh", 8*time.Second), given.Set("RemoveAfter", 5)},
			outer: []given.Option{withShelf("b"), given.Set("Refresh", 9*time.Second)}, want: "9s 5 ab in list",
		},
		{outer: []given.Option{withShelf("b"), given.Set("RemoveAfter", 4)}, query: "removeAfter=5", want: "7s 5 b in list"},
		{outer: []given.Option{given.Set("Refresh", 9*time.Second)}, query: "refresh=10s", nestedQuery: "refresh=0s", want: "0s 3  in list"},
	} {
		var result string
		b := newLookupBuilder(&result, test.inner...)
		list := given.NewBuilder("x", func(t *discovery.Target) ([]discovery.Mechanism, error) {
			t.Refresh(discovery.Refresh{RemoveAfter: 2})
			return t.Mechanisms(b, target(strings.TrimSuffix("in:///name?"+test.nestedQuery, "?")))
		}, test.outer...)
		text := strings.TrimSuffix("x:///list?"+test.query, "?")
		if err := list.Check(target(text), false); err != nil || result != test.want {
			t.Errorf("%+v: %q, %v", test, result, err)
		}
	}
}

// The options of policies apply to the whole target. The builder of a nested target must not change
// them, and the nested target's query must not contain them.
func TestNestedTargetCannotSetPolicyOptions(t *testing.T) {
	var result string
	inner := newLookupBuilder(&result, given.Set("FailoverTimeout", time.Second), given.Set("ServiceConfig", `{"retryThrottling":{}}`))
	cc := &channel{}
	list := func(nestedTarget string) given.Resolvers {
		return given.NewBuilder("x", func(t *discovery.Target) ([]discovery.Mechanism, error) {
			return t.Mechanisms(inner, target(nestedTarget))
		}, given.Set("FailoverTimeout", 2*time.Second))
	}
	if err := list("in:///name?failoverTimeout=1s").Check(target("x:///y"), false); err == nil || !strings.Contains(err.Error(), "one of the whole channel") {
		t.Errorf("a setting in the query of a mechanism: %v", err)
	}
	r, err := given.NewBuilder("x", func(t *discovery.Target) ([]discovery.Mechanism, error) {
		mechanisms, err := t.Mechanisms(inner, target("in:///name"))
		mechanisms[0].Source = &fakeSource{onStart: func(s *fakeSource) { _ = s.sendAddresses("10.0.0.1:1") }}
		return mechanisms, err
	}, given.Set("FailoverTimeout", 2*time.Second)).Build(target("x:///y"), cc, resolver.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if config := cc.config(); !strings.Contains(config, `"failoverTimeout":"2s"`) || strings.Contains(config, "retryThrottling") {
		t.Errorf("config %s contains a setting of the mechanism", config)
	}
}
