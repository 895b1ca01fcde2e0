package topology_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/balancer"
	_ "google.golang.org/grpc/balancer/leastrequest"
	_ "google.golang.org/grpc/balancer/ringhash"
	"pgregory.net/rapid"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/channel/topology"
	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	"github.com/understudy-lb/understudy/internal/config/options"
	_ "github.com/understudy-lb/understudy/internal/lb/leaf"
	"github.com/understudy-lb/understudy/internal/net/location"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
	_ "github.com/understudy-lb/understudy/policy/pickfirst"
)

// parsed returns what the policies' parsers make of a configuration's JSON.
func parsed(t interface{ Fatal(args ...any) }, config *lbconfig.Priority) *lbconfig.Priority {
	text, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	again, err := balancer.Get("understudy_priority").(balancer.ConfigParser).ParseConfig(text)
	if err != nil {
		t.Fatal(err)
	}
	return again.(*lbconfig.Priority)
}

// difference returns the path of the first difference between the exported fields of two values, and
// the values there, or "".
func difference(path string, a, b reflect.Value) string {
	if a.IsValid() != b.IsValid() || a.IsValid() && a.Type() != b.Type() {
		return fmt.Sprintf("%s: %v, %v", path, a, b)
	}
	switch a.Kind() {
	case reflect.Interface, reflect.Pointer:
		if a.Type() == reflect.TypeFor[balancer.Builder]() {
			break // compared by ==
		}
		if a.IsNil() || b.IsNil() || a.Type().Kind() == reflect.Pointer && !strings.HasSuffix(a.Type().Elem().PkgPath(), "/lbconfig") {
			break
		}
		return difference(path, a.Elem(), b.Elem())
	case reflect.Struct:
		for i := range a.NumField() {
			if f := a.Type().Field(i); f.IsExported() {
				if d := difference(path+"."+f.Name, a.Field(i), b.Field(i)); d != "" {
					return d
				}
			}
		}
		return ""
	case reflect.Map:
		for _, key := range append(a.MapKeys(), b.MapKeys()...) {
			if d := difference(fmt.Sprintf("%s[%q]", path, key), a.MapIndex(key), b.MapIndex(key)); d != "" {
				return d
			}
		}
		if a.IsNil() == b.IsNil() {
			return ""
		}
	case reflect.Slice:
		for i := range min(a.Len(), b.Len()) {
			if d := difference(fmt.Sprintf("%s[%d]", path, i), a.Index(i), b.Index(i)); d != "" {
				return d
			}
		}
		if a.IsNil() == b.IsNil() && a.Len() == b.Len() {
			return ""
		}
	}
	if a.IsValid() && !reflect.DeepEqual(a.Interface(), b.Interface()) {
		return fmt.Sprintf("%s: %#v, %#v", path, a, b)
	}
	return ""
}

var (
	someTexts   = rapid.SampledFrom([]string{"", "a", "b", "x/y", "ü", "\xff\xfe", `"`, "<&>", "\u2028"})
	someNumbers = rapid.SampledFrom([]uint32{0, 0, 1, 7, 1000, 1 << 20})
)

func drawAnswer(t *rapid.T) *discovery.Answer {
	a := &discovery.Answer{Service: someTexts.Draw(t, "service")}
	for range rapid.IntRange(0, 2).Draw(t, "drops") {
		a.Drops = append(a.Drops, discovery.Drop{Category: someTexts.Draw(t, "category"), PerMillion: min(someNumbers.Draw(t, "share"), lbconfig.Million)})
	}
	n := 0
	for range rapid.IntRange(0, 3).Draw(t, "priorities") {
		var p discovery.Priority
		seen := make(map[string]bool)
		for range rapid.IntRange(0, 3).Draw(t, "localities") {
			l := discovery.Locality{Region: someTexts.Draw(t, "region"), Zone: someTexts.Draw(t, "zone"), Weight: someNumbers.Draw(t, "locality weight")}
			if name := topology.NameOf(&l); seen[name] {
				continue
			} else {
				seen[name] = true
			}
			for range rapid.IntRange(0, 3).Draw(t, "endpoints") {
				n++
				l.Endpoints = append(l.Endpoints, discovery.Endpoint{
					Addresses: []string{fmt.Sprintf("10.0.0.%d:1", n)},
					Weight:    someNumbers.Draw(t, "weight"),
					Health:    rapid.SampledFrom([]discovery.Health{discovery.Unknown, discovery.Healthy, discovery.Draining}).Draw(t, "health"),
					ForZones:  []string{rapid.SampledFrom([]string{"a", "b"}).Draw(t, "hint")},
				})
			}
			p.Localities = append(p.Localities, l)
		}
		a.Priorities = append(a.Priorities, p)
	}
	return a
}

func drawSettings(t *rapid.T) topology.Settings {
	s := topology.Settings{
		FailoverTimeout:  rapid.SampledFrom([]time.Duration{0, 1, 1234567 * time.Nanosecond, time.Hour}).Draw(t, "failoverTimeout"),
		EndpointPolicy:   rapid.SampledFrom([]options.EndpointPolicy{"", "pick_first", `pick_first{"shuffleAddressList": true}`, `least_request_experimental{"choiceCount": 4}`, "least_request_experimental", `ring_hash_experimental{"minRingSize": 9}`}).Draw(t, "endpointPolicy"),
		WarmStandby:      rapid.IntRange(0, 3).Draw(t, "warmStandby"),
		Overflow:         rapid.Bool().Draw(t, "overflow"),
		Ramp:             rapid.SampledFrom([]time.Duration{0, time.Minute}).Draw(t, "ramp"),
		OutlierDetection: rapid.SampledFrom([]options.OutlierDetection{options.AsClusterSays, options.On, options.Off}).Draw(t, "outlierDetection"),
		Prefer:           rapid.SampledFrom([]string{"", "zone", "hints"}).Draw(t, "prefer"),
		Zone:             "a",
	}
	if s.EndpointPolicy.IsDefault() {
		s.SlowStart = rapid.SampledFrom([]time.Duration{0, time.Minute}).Draw(t, "slowStart")
	}
	return s
}

// A tree's configuration is what the policies' parsers make of its JSON, so that it does not matter
// to a policy which of the two it gets. An update does not change the values of earlier ones.
func TestTreeIsWhatItsJSONSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		settings := drawSettings(t)
		policies, err := topology.NewPolicies(settings)
		if err != nil {
			t.Fatal(err)
		}
		cluster, err := topology.ParseOutlierDetection(rapid.SampledFrom([]string{"", `{"interval": "7s", "successRateEjection": {}, "failureCodes": ["INTERNAL"]}`}).Draw(t, "cluster"))
		if err != nil {
			t.Fatal(err)
		}
		translator := topology.Translator{Near: topology.Near{Prefer: settings.Prefer, Place: location.Location{Zone: settings.Zone}}}
		var configs []*lbconfig.Priority
		var texts []string
		for range rapid.IntRange(1, 4).Draw(t, "updates") {
			tree, err := translator.Translate(drawAnswer(t))
			if err != nil {
				t.Fatal(err)
			}
			if rapid.Bool().Draw(t, "reresolving") {
				tree = tree.With(true, nil)
			}
			other := topology.Plain("backup", "", nil)
			config := policies.Combine(tree.With(false, cluster), other).Config()
			if d := difference("config", reflect.ValueOf(config), reflect.ValueOf(parsed(t, config))); d != "" {
				t.Fatalf("the value and what its JSON says differ: %s", d)
			}
			configs, texts = append(configs, config), append(texts, lbtest.JSON(config))
		}
		for i, config := range configs {
			if got := lbtest.JSON(config); got != texts[i] {
				t.Errorf("later updates changed configuration %d:\n%s\nwas\n%s", i, got, texts[i])
			}
		}
	})
}

func TestPoliciesParseConfig(t *testing.T) {
	policies, err := topology.NewPolicies(topology.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	config := policies.Combine(topology.Plain("east", "", nil), topology.Plain("west", "", nil)).Config()
	for _, top := range []*lbconfig.Priority{config, parsed(t, config)} {
		outliers := top.Children["east"].Config.Config.(*lbconfig.OutlierDetection)
		drop := outliers.ChildPolicy.Config.(*lbconfig.Drop)
		localities := drop.ChildPolicy.Config.(*lbconfig.WeightedTarget)
		endpoints := localities.Targets["/"].ChildPolicy.Config.(*lbconfig.WeightedRoundRobin)
		if outliers.Ejects() || top.RemovedChildRetention != 0 || localities.RemovedChildRetention != 0 || localities.StartPoint != lbconfig.StartRandom || endpoints.StartPoint != lbconfig.StartRandom {
			t.Errorf("the configuration is %+v, %+v, %+v, %+v", top, outliers, localities, endpoints)
		}
	}
}

// An unchanged priority has the same values as before, also if another one changes.
func TestUnchangedPrioritiesShareValues(t *testing.T) {
	policies, err := topology.NewPolicies(topology.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	var translator topology.Translator
	configOf := func(lines ...string) *lbconfig.Priority {
		tree, err := translator.Translate(answerOf(t, lines...))
		if err != nil {
			t.Fatal(err)
		}
		return policies.Combine(tree).Config()
	}
	first, second := configOf("0 us: a", "1 eu: b"), configOf("0 us weight=2: a", "1 eu: b")
	if first.Children["child0"].Config.Config == second.Children["child0"].Config.Config {
		t.Error("the weight of a locality has changed, but not the value")
	}
	if first.Children["child1"].Config.Config != second.Children["child1"].Config.Config {
		t.Error("an unchanged priority has a new value")
	}
}
