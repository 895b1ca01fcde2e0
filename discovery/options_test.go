package discovery_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/config/options"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

func configFor(t *testing.T, text string, opts ...given.Option) string {
	t.Helper()
	cc := &channel{}
	s := &fakeSource{onStart: func(s *fakeSource) { s.sendAddresses("10.0.0.1:1") }}
	r, err := newSourceBuilder(s, opts...).Build(target(text), cc, resolver.BuildOptions{})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	defer r.Close()
	return cc.config()
}

const outlierDetectionOn = `"understudy_outlier_detection":{"interval":"10s","baseEjectionTime":"30s","maxEjectionTime":"300s","maxEjectionPercent":100,` +
	`"failurePercentageEjection":{"threshold":85,"enforcementPercentage":100,"minimumHosts":1,"requestVolume":10},` +
	`"consecutiveFailuresEjection":{"failures":5,"enforcementPercentage":100},`

func TestPolicyConfig(t *testing.T) {
	program := []given.Option{
		given.Set("FailoverTimeout", 3*time.Second), given.Set("Ramp", time.Minute), given.Set("SlowStart", 30*time.Second),
	}
	standbys := []given.Option{
		given.Set("WarmStandby", 2), given.Set("Overflow", true), given.Set("Ramp", 10*time.Second),
	}
	for _, test := range []struct {
		target string
		opts   []given.Option
		want   []string
	}{
		{"x:///y", nil, []string{`"failoverTimeout":"10s"`, `[{"understudy_weighted_round_robin":{"startPoint":"random"}}]`}},
		{"x:///y", program, []string{`"failoverTimeout":"3s"`, `"ramp":"60s"`, `"slowStart":{"window":"30s"`}},
		{"x:///y?failoverTimeout=1500ms&ramp=2s&slowStart=1m", program, []string{`"failoverTimeout":"1.500s"`, `"ramp":"2s"`, `"slowStart":{"window":"60s"`}},
		{"x:///y?slowStart=0s", program, []string{`"failoverTimeout":"3s"`, `{"startPoint":"random"}`}},
		{"x:///y?endpointPolicy=pick_first", nil, []string{`"childPolicy":[{"understudy_pick_first":{}}]`}},
		{"x:///y", []given.Option{given.Set("EndpointPolicy", "pick_first")}, []string{`"childPolicy":[{"understudy_pick_first":{}}]`}},
		{"x:///y?warmStandby=1&overflow=true&ramp=20s", nil, []string{`"warmStandby":1,"overflow":true,"ramp":"20s"}`}},
		{"x:///y", standbys, []string{`"warmStandby":2,"overflow":true,"ramp":"10s"}`}},
		{"x:///y?warmStandby=0&overflow=false", standbys, []string{`"ramp":"10s"}`}},
		{"x:///y", nil, []string{`"maxEjectionPercent":10,"childPolicy":[{"understudy_drop"`}},
		{"x:///y?outlierDetection=true", nil, []string{outlierDetectionOn}},
		{"x:///y", []given.Option{given.Set("OutlierDetection", options.On)}, []string{outlierDetectionOn}},
		{"x:///y?outlierDetection=false", []given.Option{given.Set("OutlierDetection", options.On)}, []string{`"maxEjectionPercent":10,"childPolicy"`}},
		{"x:///y?endpointPolicy=weighted_round_robin", []given.Option{given.Set("EndpointPolicy", "pick_first")}, []string{`"understudy_weighted_round_robin"`}},
		{"x:///y", []given.Option{given.Set("ServiceConfig", `{"retryThrottling":{}}`)}, []string{`"retryThrottling":{}`}},
	} {
		config := configFor(t, test.target, test.opts...)
		for _, want := range test.want {
			if !strings.Contains(config, want) {
				t.Errorf("%s: config %s\nhas no %s", test.target, config, want)
			}
		}
	}
}

func TestInvalidOptions(t *testing.T) {
	const parameterNames = "want one of authority, endpointPolicy, failoverTimeout, node, outlierDetection, overflow, perPriority, prefer, ramp, region, shelf, slowStart, subset, subsetSeed, warmStandby, zone"
	parse := func(t *discovery.Target) ([]discovery.Mechanism, error) {
		t.Parameter("shelf")
		return []discovery.Mechanism{{Source: &fakeSource{}}}, nil
	}
	for _, test := range []struct {
		query string
		opt   given.Option
		want  string
	}{
		{"failovertimeout=1s", nil, `target "x:///y?failovertimeout=1s" has the unknown parameter "failovertimeout" (in a name, ? is written %3F), ` + parameterNames},
		{"failoverTimeout=1", nil, `failoverTimeout: "1" given, want a duration such as 10s`},
		{"failoverTimeout=0s", nil, "failoverTimeout: 0s given, want a duration such as 10s, of more than 0s"},
		{"ramp=-1s", nil, "ramp: -1s given, want a duration such as 10s, from 1s to 1h0m0s"},
		{"ramp=25h", nil, "ramp: 25h0m0s given, want a duration such as 10s, from 1s to 1h0m0s"},
		{"warmStandby=some", nil, `warmStandby: "some" given, want a whole number such as 1`},
		{"warmStandby=-1", nil, "warmStandby: -1 given, want 0 to 128"},
		{"", given.Set("WarmStandby", 129), "warmStandby: 129 given, want 0 to 128"},
		{"overflow=1s", nil, `overflow: "1s" given, want true or false`},
		{"", given.Set("Ramp", 25*time.Hour), "ramp: 25h0m0s given, want a duration such as 10s, from 1s to 1h0m0s"},
		{"slowStart=soon", nil, `slowStart: "soon" given, want a duration such as 10s`},
		{"endpointPolicy=best", nil, `endpointPolicy: "best" given, which is not registered, want weighted_round_robin, pick_first, or a policy`},
		{"authority=a&authority=b", nil, "must have exactly one value for authority"},
		{"shelf=", nil, "must have exactly one value for shelf"},
		{"%zz", nil, "has a query that does not parse"},
		{"shelf=a;b", nil, "has a query that does not parse"},
		{"", given.Set("FailoverTimeout", -1), "failoverTimeout: -1ns given, want a duration such as 10s, of more than 0s"},
		{"", given.Set("SlowStart", -time.Second), "slowStart: -1s given"},
		{"outlierDetection=on", nil, `outlierDetection: "on" given, want true or false`},
		{"endpointPolicy=pick_first&outlierDetection=true", nil, "outlierDetection: given together with endpointPolicy pick_first, want one of them: one pick_first"},
		{"", given.Set("ServiceConfig", `{"loadBalancingConfig":[]}`), "loadBalancingConfig is set by the resolver"},
	} {
		b := given.NewBuilder("x", parse, test.opt)
		text := "x:///y"
		if test.query != "" {
			text += "?" + test.query
		}
		_, err := b.Build(target(text), &channel{}, resolver.BuildOptions{})
		if err == nil || !strings.HasPrefix(err.Error(), "x: ") || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", text, err, test.want)
		}
		if again := b.Check(target(text), false); again == nil || again.Error() != err.Error() {
			t.Errorf("%s: Validate = %v, want the same as Build: %v", text, again, err)
		}
	}
}

func TestAuthority(t *testing.T) {
	named := func(opts ...given.Option) given.Resolvers {
		return newBuilder([]discovery.Mechanism{{Source: &fakeSource{}, Authority: "named"}}, opts...)
	}
	for _, test := range []struct {
		b            given.Resolvers
		target, want string
	}{
		{newSourceBuilder(&fakeSource{}), "x:///y z", "y%20z"},
		{newSourceBuilder(&fakeSource{}), "x:///:443", "localhost:443"},
		{named(), "x:///y", "named"},
		{named(given.Set("Authority", "a b")), "x:///y", "a%20b"},
		{named(given.Set("Authority", "option")), "x:///y?authority=parameter", "parameter"},
	} {
		if got := test.b.OverrideAuthority(target(test.target)); got != test.want {
			t.Errorf("%s: authority %q, want %q", test.target, got, test.want)
		}
	}
	s := &fakeSource{onStart: func(s *fakeSource) { s.sendAddresses("10.0.0.1:1") }}
	cc := &channel{}
	r := build(t, newBuilder([]discovery.Mechanism{{Name: "a", Source: s, Authority: "mechanism"}}, given.Set("Authority", "option")), cc)
	defer r.Close()
	if got, want := cc.take(), `state 10.0.0.1:1["a/child0" "/"]`; got != want {
		t.Errorf("channel saw %q, want %q", got, want)
	}
}

func TestSourceOptions(t *testing.T) {
	type sourceOptions struct{ shelf, room string }
	var got sourceOptions
	parse := func(t *discovery.Target) ([]discovery.Mechanism, error) {
		got = discovery.OwnOptions(t, sourceOptions{"top", "store"})
		return []discovery.Mechanism{{Source: &fakeSource{}}}, nil
	}
	left, right := given.Sources(discovery.OwnOption(func(o *sourceOptions) { o.shelf = "left" })), given.Sources(discovery.OwnOption(func(o *sourceOptions) { o.shelf = "right" }))
	for _, test := range []struct {
		b    given.Resolvers
		want sourceOptions
	}{
		{given.NewBuilder("x", parse), sourceOptions{"top", "store"}},
		{given.NewBuilder("x", parse, left), sourceOptions{"left", "store"}},
		{given.NewBuilder("x", parse, left, right), sourceOptions{"right", "store"}},
	} {
		if test.b.Check(target("x:///y"), false); got != test.want {
			t.Errorf("options are %+v, want %+v", got, test.want)
		}
	}
}

func TestInvalidMechanisms(t *testing.T) {
	s := &fakeSource{}
	for want, mechanisms := range map[string][]discovery.Mechanism{
		"the source has no mechanisms, want at least one":                    {},
		"mechanism 1 has no source":                                          {{Name: "a"}},
		`mechanism 2 has the name "a", want one that no other mechanism has`: {{Name: "a", Source: s}, {Name: "a", Source: s}},
		`mechanism 1 has the name "", want one that no other mechanism has`:  {{Source: s}, {Name: "a", Source: s}},
		"in the service config, which this channel disables (grpc.WithDis":   {{Source: s}},
	} {
		opts := resolver.BuildOptions{DisableServiceConfig: strings.Contains(want, "disables")}
		if _, err := newBuilder(mechanisms).Build(target("x:///y"), &channel{}, opts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Build = %v, want %q", err, want)
		}
	}
}
