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

// looked returns a builder whose source looks up names. Each time it parses a target, it writes the
// resulting refresh interval and removeAfter to said.
func looked(said *string, opts ...given.Option) given.Resolvers {
	return given.NewBuilder("in", func(t *discovery.Target) ([]discovery.Mechanism, error) {
		r, err := t.Refresh(discovery.Refresh{Every: 7 * time.Second, RemoveAfter: 3})
		*said = fmt.Sprint(r.Every, " ", r.RemoveAfter, " ", discovery.OwnOptions(t, shelf{}).name, " in ", t.Channel.Endpoint())
		return []discovery.Mechanism{{Source: &scripted{}, Authority: "its-own"}}, err
	}, opts...)
}

// The options of lookups must come from these places, the first one that sets an option: the nested
// target's parameters, the target's parameters, the program, the nested target's builder, and the
// source's defaults.
func TestOptionsOfParts(t *testing.T) {
	for _, test := range []struct {
		part, query  string
		inner, outer []given.Option
		want         string
	}{
		{want: "7s 3  in list"},
		{inner: []given.Option{withShelf("a"), given.Set("Refresh", 8*time.Second)}, want: "8s 3 a in list"},
		{
			inner: []given.Option{withShelf("a"), given.Set("Refresh", 8*time.Second), given.Set("RemoveAfter", 5)},
			outer: []given.Option{withShelf("b"), given.Set("Refresh", 9*time.Second)}, want: "9s 5 ab in list",
		},
		{outer: []given.Option{withShelf("b"), given.Set("RemoveAfter", 4)}, query: "removeAfter=5", want: "7s 5 b in list"},
		{outer: []given.Option{given.Set("Refresh", 9*time.Second)}, query: "refresh=10s", part: "refresh=0s", want: "0s 3  in list"},
	} {
		var said string
		b := looked(&said, test.inner...)
		list := given.NewBuilder("x", func(t *discovery.Target) ([]discovery.Mechanism, error) {
			if _, err := t.Refresh(discovery.Refresh{RemoveAfter: 2}); err != nil {
				return nil, err
			}
			return t.Parts(b, target(strings.TrimSuffix("in:///name?"+test.part, "?")))
		}, test.outer...)
		text := strings.TrimSuffix("x:///list?"+test.query, "?")
		if err := list.Check(target(text), false); err != nil || said != test.want {
			t.Errorf("%+v: %q, %v", test, said, err)
		}
	}
}

// The options of policies apply to the whole target. The builder of a nested target must not change
// them, and in its query they must be an error.
func TestSettingsOfPartsAreTheChannels(t *testing.T) {
	var said string
	inner := looked(&said, given.Set("FailoverTimeout", time.Second), given.Set("ServiceConfig", `{"retryThrottling":{}}`))
	cc := &channel{}
	list := func(part string) given.Resolvers {
		return given.NewBuilder("x", func(t *discovery.Target) ([]discovery.Mechanism, error) {
			return t.Parts(inner, target(part))
		}, given.Set("FailoverTimeout", 2*time.Second))
	}
	if err := list("in:///name?failoverTimeout=1s").Check(target("x:///y"), false); err == nil || !strings.Contains(err.Error(), "one of the whole channel") {
		t.Errorf("a setting in the query of a mechanism: %v", err)
	}
	r, err := given.NewBuilder("x", func(t *discovery.Target) ([]discovery.Mechanism, error) {
		parts, err := t.Parts(inner, target("in:///name"))
		parts[0].Source = &scripted{inStart: func(s *scripted) { _ = s.say("10.0.0.1:1") }}
		return parts, err
	}, given.Set("FailoverTimeout", 2*time.Second)).Build(target("x:///y"), cc, resolver.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if config := cc.config(); !strings.Contains(config, `"failoverTimeout":"2s"`) || strings.Contains(config, "retryThrottling") {
		t.Errorf("config %s contains a setting of the mechanism", config)
	}
}
