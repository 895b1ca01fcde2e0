package join_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/channel/join"
	"github.com/understudy-lb/understudy/internal/config/options"
	"github.com/understudy-lb/understudy/internal/testing/flat"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
	"github.com/understudy-lb/understudy/internal/testing/settle"
)

// channel is the resolver.ClientConn of a fake channel.
type channel struct {
	resolver.ClientConn

	mu      sync.Mutex
	json    string // the configuration of the policies
	updates [][]resolver.Endpoint
}

func (c *channel) UpdateState(state resolver.State) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.updates = append(c.updates, state.Endpoints)
	c.json = lbtest.StateJSON(state, `[{"understudy_priority":{}}]`)
	return nil
}

func (c *channel) ReportError(error) {}

func (c *channel) ParseServiceConfig(string) *serviceconfig.ParseResult {
	return &serviceconfig.ParseResult{}
}

// last describes the last update: address and server name of each endpoint.
func (c *channel) last() string {
	settle.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.updates) == 0 {
		return "nothing"
	}
	var all []string
	for _, e := range c.updates[len(c.updates)-1] {
		all = append(all, e.Addresses[0].Addr+" "+e.Addresses[0].ServerName)
	}
	return strings.Join(all, ", ")
}

func (c *channel) config() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.json
}

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

// stubSource is a source that sends its answer when it starts. If fails is set, it sends a failure
// instead. Start returns err.
type stubSource struct {
	answer discovery.Answer
	fails  bool
	err    error
}

func (*stubSource) Check(bool) error { return nil }

func (s *stubSource) Start(r *discovery.Receiver) (discovery.Started, error) {
	switch {
	case s.fails:
		r.Fail(errors.New("down"))
	case len(s.answer.Priorities) > 0:
		_ = r.Update(s.answer)
	}
	return discovery.Started{}, s.err
}

func build(t *testing.T, target string, given options.Program, opts resolver.BuildOptions, mechanisms ...discovery.Mechanism) (*channel, resolver.Resolver, error) {
	t.Helper()
	built.mechanisms = mechanisms
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	c := &channel{}
	r, err := options.BuilderFor("built", given).Build(resolver.Target{URL: *u}, c, opts)
	return c, r, err
}

func mustBuild(t *testing.T, target string, given options.Program, opts resolver.BuildOptions, mechanisms ...discovery.Mechanism) *channel {
	t.Helper()
	c, r, err := build(t, target, given, opts, mechanisms...)
	if err != nil {
		t.Fatal(err)
	}
	settle.Wait()
	r.Close()
	settle.Wait()
	return c
}

// uniquePrefix makes a channel share no stored answer with others.
var uniquePrefix = options.Program{Sources: []any{struct{}{}}}

func hostname(address, name string) discovery.Answer {
	a := flat.Answer(flat.Endpoint{Address: address})
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
				test.mechanism.Source = &stubSource{answer: hostname("10.0.0.1:1", "host")}
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
			c := mustBuild(t, "built:///prefer", given, resolver.BuildOptions{}, discovery.Mechanism{Prefer: test.mechanism, Source: &stubSource{answer: answer}})
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
		mechanism := discovery.Mechanism{OutlierDetection: `{"interval": "77s", "successRateEjection": {}}`, Source: &stubSource{answer: hostname("10.0.0.1:1", "")}}
		c := mustBuild(t, "built:///outliers", uniquePrefix, resolver.BuildOptions{}, mechanism)
		if c.last() == "nothing" || strings.Contains(c.config(), "77s") {
			t.Errorf("the configuration is %s", c.config())
		}
	})
}

func TestTargetsThatCannotBeBuilt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good := discovery.Mechanism{Source: &stubSource{answer: hostname("10.0.0.1:1", "")}}
		for want, test := range map[string]struct {
			target    string
			opts      resolver.BuildOptions
			mechanism discovery.Mechanism
		}{
			"built: the load-balancing policy comes with the endpoints": {"built:///a", resolver.BuildOptions{DisableServiceConfig: true}, good},
			`has the unknown parameter "nosuch"`:                        {"built:///a?nosuch=1", resolver.BuildOptions{}, good},
			"built: no good":                                            {"built:///a", resolver.BuildOptions{}, discovery.Mechanism{Source: &stubSource{err: errors.New("no good")}}},
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

// A source may keep the ClientConn. It leads to the channel until the channel is closed.
func TestClientConnOfTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, r, err := build(t, "built:///conn", uniquePrefix, resolver.BuildOptions{}, discovery.Mechanism{Source: &stubSource{}})
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
		mustBuild(t, "built:///counted", uniquePrefix, resolver.BuildOptions{MetricsRecorder: recorder}, discovery.Mechanism{Source: &stubSource{answer: hostname("10.0.0.1:1", "")}})
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
			mustBuild(t, first, test.first, resolver.BuildOptions{}, discovery.Mechanism{Source: &stubSource{answer: hostname("10.0.0.1:1", "")}})
			got := mustBuild(t, test.target, test.second, resolver.BuildOptions{}, discovery.Mechanism{Source: &stubSource{fails: true}}).last()
			if (got != "nothing") != test.shared {
				t.Errorf("%s: the second channel got %s, shared = %v", name, got, test.shared)
			}
		})
	}
}

func TestNoteIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		join.Logged.Take()
		given := uniquePrefix
		given.Prefer = "zone"
		built.mechanisms = []discovery.Mechanism{{Source: &stubSource{answer: hostname("10.0.0.1:1", "")}}}
		b := options.BuilderFor("built", given)
		for range 2 {
			r, err := b.Build(resolver.Target{URL: url.URL{Scheme: "built", Path: "/note"}}, &channel{}, resolver.BuildOptions{})
			if err != nil {
				t.Fatal(err)
			}
			r.Close()
		}
		if got := join.Logged.Take(); strings.Count(got, "built: prefer=zone has no effect: the location of this client is unknown") != 1 {
			t.Errorf("logged %q, want one line about the location", got)
		}
	})
}

func TestAuthorityAndSettings(t *testing.T) {
	built.mechanisms = []discovery.Mechanism{{Source: &stubSource{}, Authority: "auth", Prefer: "hints"}, {Name: "second", Source: &stubSource{}}}
	built.mechanisms[0].Name = "first"
	if got, _, err := join.Settings("built:///x"); got != "auth" || err != nil {
		t.Errorf("Authority = %q, %v; want auth", got, err)
	}
	if _, _, err := join.Settings("built:///x?nosuch=1"); err == nil {
		t.Error("Authority of a target with an unknown parameter has no error")
	}
	for target, want := range map[string]string{
		"built:///x": "", "built:///x?zone=a": "hints", "built:///x?node=n": "hints", "built:///x?zone=a&prefer=zone": "zone", "built:///x?prefer=zone": "zone",
	} {
		if _, got, err := join.Settings(target); got.Prefer != want || err != nil {
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
		got, err := join.WithOptions(test.target, strings.Fields(test.options))
		if err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("WithOptions(%s, %s) = %s, want %s", test.target, test.options, got, test.want)
		}
	}
}
