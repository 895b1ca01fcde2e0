package join

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/status"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/config/options"
	"github.com/understudy-lb/understudy/internal/testing/flat"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

// built is what the parser of the scheme "built" returns next, and the last target that it got.
var built struct {
	mechanisms []discovery.Mechanism
	last       discovery.Target
}

func init() {
	discovery.Register("built", func(t *discovery.Target) ([]discovery.Mechanism, error) {
		built.last = *t
		return built.mechanisms, nil
	})
}

func build(t *testing.T, target string, given options.Program, opts resolver.BuildOptions, mechanisms ...discovery.Mechanism) (*recording, resolver.Resolver, error) {
	t.Helper()
	built.mechanisms = mechanisms
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	c := &recording{}
	r, err := options.BuilderFor("built", given).Build(resolver.Target{URL: *u}, c, opts)
	return c, r, err
}

func mustBuild(t *testing.T, target string, given options.Program, opts resolver.BuildOptions, mechanisms ...discovery.Mechanism) *recording {
	t.Helper()
	c, r, err := build(t, target, given, opts, mechanisms...)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	r.Close()
	synctest.Wait()
	return c
}

// uniquePrefix makes a channel share no stored answer with others.
var uniquePrefix = options.Program{Sources: []any{struct{}{}}}

func hostname(name string) discovery.Answer {
	a := answerOf(1)
	a.Priorities[0].Localities[0].Endpoints[0].Hostname = name
	return a
}

// Endpoints of a named mechanism are verified against its authority or, if that is trusted, against
// their own names. If the credentials contain a name, it is used instead.
func TestServerNamesOfEndpoints(t *testing.T) {
	creds := resolver.BuildOptions{DialCreds: credentials.NewTLS(&tls.Config{ServerName: "x"})}
	for name, test := range map[string]struct {
		opts      resolver.BuildOptions
		mechanism discovery.Mechanism
		want      string
	}{
		"no name":                  {resolver.BuildOptions{}, discovery.Mechanism{Authority: "auth"}, "10.0.0.1:1 "},
		"a name":                   {resolver.BuildOptions{}, discovery.Mechanism{Name: "n", Authority: "auth"}, "10.0.0.1:1 auth"},
		"trusted":                  {resolver.BuildOptions{}, discovery.Mechanism{Name: "n", Authority: "auth", TrustNames: true}, "10.0.0.1:1 host"},
		"trusted, without a name":  {resolver.BuildOptions{}, discovery.Mechanism{TrustNames: true}, "10.0.0.1:1 host"},
		"credentials with a name":  {creds, discovery.Mechanism{Name: "n", Authority: "auth"}, "10.0.0.1:1 "},
		"trusted, and credentials": {creds, discovery.Mechanism{Name: "n", Authority: "auth", TrustNames: true}, "10.0.0.1:1 "},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				test.mechanism.Source = &fakeSource{answer: hostname("host")}
				if got := mustBuild(t, "built:///names", uniquePrefix, test.opts, test.mechanism).last(); got != test.want {
					t.Errorf("the channel got %q, want %q", got, test.want)
				}
			})
		})
	}
}

// An option overrides what the mechanisms prefer, and "none" means no preference.
func TestChoiceOfPreference(t *testing.T) {
	answer := flat.Answer(flat.Endpoint{Address: "10.0.0.1:1", Locality: "r/a"}, flat.Endpoint{Address: "10.0.0.2:1", Locality: "r/b"})
	answer.Priorities[0].Localities[0].Endpoints[0].ForZones = []string{"b"}
	answer.Priorities[0].Localities[1].Endpoints[0].ForZones = []string{"a"}
	for _, test := range []struct{ option, mechanism, want string }{
		{"", "", "10.0.0.1:1 , 10.0.0.2:1 "},
		{"zone", "", "10.0.0.1:1 , 10.0.0.2:1 "},
		{"", "hints", "10.0.0.2:1 , 10.0.0.1:1 "},
		{"zone", "hints", "10.0.0.1:1 , 10.0.0.2:1 "},
		{"none", "hints", "10.0.0.1:1 , 10.0.0.2:1 "},
	} {
		synctest.Test(t, func(t *testing.T) {
			given := uniquePrefix
			given.Prefer, given.Zone = test.option, "a"
			c := mustBuild(t, "built:///prefer", given, resolver.BuildOptions{}, discovery.Mechanism{Prefer: test.mechanism, Source: &fakeSource{answer: answer}})
			groups := 1
			if test.option == "zone" || test.option == "" && test.mechanism != "" {
				groups = 2
			}
			if got := c.last(); got != test.want || strings.Count(c.config(), `"understudy_drop"`) != groups {
				t.Errorf("prefer %q, and the mechanism %q: the channel got %q and %s, want %q in %d groups", test.option, test.mechanism, got, c.config(), test.want, groups)
			}
		})
	}
}

// A mechanism's outlier detection has an effect only in a list that a source sends.
func TestOutlierDetectionOfWholeTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mechanism := discovery.Mechanism{OutlierDetection: `{"interval": "77s", "successRateEjection": {}}`, Source: &fakeSource{answer: answerOf(1)}}
		c := mustBuild(t, "built:///outliers", uniquePrefix, resolver.BuildOptions{}, mechanism)
		if c.last() == "nothing" || strings.Contains(c.config(), "77s") {
			t.Errorf("the configuration is %s", c.config())
		}
	})
}

func TestTargetsThatCannotBeBuilt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good := discovery.Mechanism{Source: &fakeSource{answer: answerOf(1)}}
		for want, test := range map[string]struct {
			target    string
			opts      resolver.BuildOptions
			mechanism discovery.Mechanism
		}{
			"built: the load-balancing policy comes with the endpoints": {"built:///a", resolver.BuildOptions{DisableServiceConfig: true}, good},
			`has the unknown parameter "nosuch"`:                        {"built:///a?nosuch=1", resolver.BuildOptions{}, good},
			"built: no good":                                            {"built:///a", resolver.BuildOptions{}, discovery.Mechanism{Source: &fakeSource{err: errors.New("no good")}}},
		} {
			c, r, err := build(t, test.target, uniquePrefix, test.opts, test.mechanism)
			if err == nil || !strings.Contains(err.Error(), want) || r != nil || c.last() != "nothing" {
				t.Errorf("Build(%s) = %v, %v and updates %s, want the error %s", test.target, r, err, c.last(), want)
			}
			if strings.HasSuffix(want, "no good") && channelOf(built.last) == c {
				t.Error("the ClientConn of a target that could not be started is not closed")
			}
		}
	})
}

// If gRPC gets an error that wraps a status, it fails even wait-for-ready calls with this error. No
// source may give gRPC such an error. TestLeavesFailWithPlainErrors of internal/channel and others
// there say the same of policies.
func TestErrorsForGRPCHaveNoStatus(t *testing.T) {
	final := fmt.Errorf("theirs: %w", status.Error(codes.PermissionDenied, "go away"))
	for name, test := range map[string]struct {
		startErr, failure, refusal error
		serviceConfig              string
	}{
		"the source cannot be started":                  {startErr: final},
		"the source fails":                              {failure: final},
		"the channel refuses the service config":        {refusal: final},
		"the channel refuses the user's service config": {refusal: final, serviceConfig: `{"methodConfig":[]}`},
	} {
		synctest.Test(t, func(t *testing.T) {
			given := uniquePrefix
			given.ServiceConfig = test.serviceConfig
			built.mechanisms = []discovery.Mechanism{{Source: &fakeSource{err: test.startErr, failure: test.failure}}}
			cc := &recording{refusal: test.refusal}
			r, err := options.BuilderFor("built", given).Build(resolver.Target{URL: url.URL{Scheme: "built", Path: "/plain"}}, cc, resolver.BuildOptions{})
			if err == nil {
				synctest.Wait()
				r.Close()
				err = errors.Join(cc.errs...)
			}
			if _, isStatus := status.FromError(err); isStatus || !strings.Contains(err.Error(), "go away") {
				t.Errorf("%s: gRPC gets %v, want a plain error", name, err)
			}
		})
	}
}

// A source may keep the ClientConn. It leads to the channel until the channel is closed.
func TestClientConnOfTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, r, err := build(t, "built:///conn", uniquePrefix, resolver.BuildOptions{}, discovery.Mechanism{Source: &fakeSource{}})
		if err != nil {
			t.Fatal(err)
		}
		last := built.last
		if channelOf(last) != c {
			t.Error("the ClientConn does not lead to the channel")
		}
		r.Close()
		if channelOf(last) == c || last.ClientConn.ParseServiceConfig("{}") == nil {
			t.Error("the ClientConn is not closed with the channel")
		}
	})
}

// channelOf returns what discovery.FromResolver makes of the ClientConn of a target.
func channelOf(t discovery.Target) resolver.ClientConn {
	return t.ClientConn.(interface{ Channel() resolver.ClientConn }).Channel()
}

func TestUpdatesAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder := &lbtest.Recorder{}
		mustBuild(t, "built:///counted", uniquePrefix, resolver.BuildOptions{MetricsRecorder: recorder}, discovery.Mechanism{Source: &fakeSource{answer: answerOf(1)}})
		if got := fmt.Sprint(recorder.Counts()); got != "map[understudy.source.updates built:///counted built accepted:1]" {
			t.Errorf("counted %s, want one accepted update", got)
		}
	})
}

// Channels with the same target and options share the last good answer while they are idle. If a
// program sets options of sources, its channels share it only with each other.
func TestSharedAnswers(t *testing.T) {
	plain, other := options.Program{}, options.Program{Authority: "other"}
	for name, test := range map[string]struct {
		first, second options.Program
		target        string
		shared        bool
	}{
		"the same":           {plain, plain, "built:///shared1", true},
		"another authority":  {plain, other, "built:///shared2", false},
		"another target":     {plain, plain, "built:///else", false},
		"options of sources": {uniquePrefix, uniquePrefix, "built:///shared4", false},
	} {
		synctest.Test(t, func(t *testing.T) {
			first := strings.Replace(test.target, "else", "shared3", 1)
			mustBuild(t, first, test.first, resolver.BuildOptions{}, discovery.Mechanism{Source: &fakeSource{answer: answerOf(1)}})
			got := mustBuild(t, test.target, test.second, resolver.BuildOptions{}, discovery.Mechanism{Source: &fakeSource{failure: errors.New("down")}}).last()
			if (got != "nothing") != test.shared {
				t.Errorf("%s: the second channel got %s, shared = %v", name, got, test.shared)
			}
		})
	}
}

func TestNoteIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logged.Take()
		given := uniquePrefix
		given.Prefer = "zone"
		built.mechanisms = []discovery.Mechanism{{Source: &fakeSource{answer: answerOf(1)}}}
		b := options.BuilderFor("built", given)
		for range 2 {
			r, err := b.Build(resolver.Target{URL: url.URL{Scheme: "built", Path: "/note"}}, &recording{}, resolver.BuildOptions{})
			if err != nil {
				t.Fatal(err)
			}
			r.Close()
		}
		if got := logged.Take(); strings.Count(got, "built: prefer=zone has no effect: the location of this client is unknown") != 1 {
			t.Errorf("logged %q, want one line about the location", got)
		}
	})
}

func TestAuthorityAndSettings(t *testing.T) {
	built.mechanisms = []discovery.Mechanism{{Source: &fakeSource{}, Authority: "auth", Prefer: "hints"}, {Name: "second", Source: &fakeSource{}}}
	built.mechanisms[0].Name = "first"
	if got, _, err := Settings("built:///x"); got != "auth" || err != nil {
		t.Errorf("Authority = %q, %v; want auth", got, err)
	}
	if _, _, err := Settings("built:///x?nosuch=1"); err == nil {
		t.Error("Authority of a target with an unknown parameter has no error")
	}
	for target, want := range map[string]string{
		"built:///x": "", "built:///x?zone=a": "hints", "built:///x?node=n": "hints", "built:///x?zone=a&prefer=zone": "zone", "built:///x?prefer=zone": "zone",
	} {
		if _, got, err := Settings(target); got.Prefer != want || err != nil {
			t.Errorf("Settings(%s) prefers %q, %v; want %q", target, got.Prefer, err, want)
		}
	}
}

func TestWithOptions(t *testing.T) {
	for _, test := range []struct {
		target, options, want string
	}{
		{"a:1", "", "a:1"},
		{"a:1", "x=1", "a:1?x=1"},
		{"a:1?z=0", "x=1 y=a,b", "a:1?z=0&x=1&y=a%2Cb"},
		{"a:1", "x=1 y=", "a:1?x=1&y="},
		{"a:1", "x", `--option "x": want NAME=VALUE, such as failoverTimeout=5s`},
		{"a:1", "=1", `--option "=1": want NAME=VALUE, such as failoverTimeout=5s`},
	} {
		got, err := WithOptions(test.target, strings.Fields(test.options))
		if err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("WithOptions(%s, %s) = %s, want %s", test.target, test.options, got, test.want)
		}
	}
}
