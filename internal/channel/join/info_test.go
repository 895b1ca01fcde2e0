package join

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/channel/topology"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
	"github.com/understudy-lb/understudy/internal/testing/testlog"
)

var logged = testlog.Capture()

// recording is a fake channel that keeps all states and the last service config.
type recording struct {
	resolver.ClientConn
	json     string
	parsed   *serviceconfig.ParseResult
	states   []resolver.State
	errs     []error
	onUpdate func() // may be nil
	refusal  error  // of service configs
}

func (c *recording) UpdateState(state resolver.State) error {
	c.states = append(c.states, state)
	if c.onUpdate != nil {
		c.onUpdate()
	}
	return nil
}

func (c *recording) ReportError(err error) { c.errs = append(c.errs, err) }

func (c *recording) ParseServiceConfig(json string) *serviceconfig.ParseResult {
	c.json, c.parsed = json, &serviceconfig.ParseResult{Err: c.refusal}
	return c.parsed
}

// updates has the number of endpoints in each state.
func (c *recording) updates() string {
	synctest.Wait()
	var sizes []int
	for _, state := range c.states {
		sizes = append(sizes, len(state.Endpoints))
	}
	return fmt.Sprint(sizes)
}

// last returns the addresses and server names of the last state.
func (c *recording) last() string {
	synctest.Wait()
	if len(c.states) == 0 {
		return "nothing"
	}
	var all []string
	for _, e := range c.states[len(c.states)-1].Endpoints {
		all = append(all, e.Addresses[0].Addr+" "+e.Addresses[0].ServerName)
	}
	return strings.Join(all, ", ")
}

// config returns the configuration of the policies in the last state.
func (c *recording) config() string {
	return lbtest.StateJSON(c.states[len(c.states)-1], `[{"understudy_priority":{}}]`)
}

func (c *recording) info() *stateattr.Channel {
	return stateattr.ChannelOf(c.states[len(c.states)-1])
}

// several returns the configuration of a channel with several mechanisms.
func several(mechanisms ...discovery.Mechanism) *Config {
	c := &Config{Scheme: "x", Target: "x:///y"}
	for _, p := range mechanisms {
		c.Entries = append(c.Entries, Entry{Mechanism: p})
	}
	return c
}

func start(t *testing.T, config *Config) (*recording, *Resolver) {
	t.Helper()
	cc := &recording{}
	return cc, startOn(t, cc, config)
}

func startOn(t *testing.T, cc *recording, config *Config) *Resolver {
	t.Helper()
	c, err := Start(cc, config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestNamesOfPriorities(t *testing.T) {
	for _, test := range []struct {
		mechanism string
		n         int
		title     string
		want      string
	}{
		{"", 0, topology.NoLocality, ""},
		{"", 1, "", "priority 1"},
		{"", 0, "us", "us"},
		{"m", 2, topology.NoLocality, "m: priority 2"},
		{"m", 2, "", "m: priority 2"},
		{"m", 0, "us", "m: us"},
		{"m", 0, "m", "m"},
	} {
		if got := priorityName(test.mechanism, test.n, test.title); got != test.want {
			t.Errorf("priorityName(%q, %d, %q) = %q, want %q", test.mechanism, test.n, test.title, got, test.want)
		}
	}
}

// The channel gets the user's service config with ours, and the log says how many endpoints there
// are. Without a priority, the channel gets the reason.
func TestChannelUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeSource{}
		config := configOf(nil, "", s)
		config.ServiceConfig = `{"methodConfig": [{"name": [{}], "timeout": "7s"}]}`
		config.Entries[0].ServerName = "host"
		logged.Take()
		cc, c := start(t, config)
		defer c.Close()
		_ = s.Update(answerOf(1))
		if got := cc.last(); got != "10.0.0.1:1 host" {
			t.Errorf("the channel got %q, want the endpoint with the mechanism's server name", got)
		}
		state := cc.states[0]
		if state.ServiceConfig != cc.parsed || !strings.Contains(cc.json, `"timeout": "7s"`) && !strings.Contains(cc.json, `"timeout":"7s"`) || !strings.Contains(cc.json, "loadBalancingConfig") {
			t.Errorf("the service config is %s", cc.json)
		}
		if !strings.Contains(cc.config(), `"ignoreReresolutionRequests":true`) {
			t.Errorf("the source does not listen to requests, but the policies pass them on: %s", cc.config())
		}
		if got := logged.Take(); !strings.Contains(got, "x: x:///y: 1 endpoint in 1 priority\n") {
			t.Errorf("logged %q, want the number of endpoints", got)
		}
		if cc.info().Empty != "" {
			t.Errorf("the channel received the error %s although there is a priority", cc.info().Empty)
		}
		_ = s.Update(discovery.Answer{Empty: true, Why: "nothing is selected"})
		if got := cc.last(); got != "" || cc.info().Empty != "x:///y: nothing is selected" {
			t.Errorf("the channel received the state %q and the report %q", got, cc.info().Empty)
		}
	})
}

// A mechanism that cannot be started counts as one priority without endpoints. The others are used.
func TestMechanismThatCannotBeStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good := &fakeSource{}
		cc, c := start(t, several(discovery.Mechanism{Name: "bad", Source: &fakeSource{err: errors.New("no")}}, discovery.Mechanism{Name: "good", Source: good}))
		defer c.Close()
		_ = good.Update(answerOf(1))
		if got := cc.last(); got != "10.0.0.1:1 " || !strings.Contains(cc.config(), `"priorities":["bad","good/child0"]`) {
			t.Errorf("the channel got %q and %s, want the priorities bad and good", got, cc.config())
		}
		if got := cc.info(); got.Failures["bad"] != "x: bad: no" || got.Names["bad"] != "bad" || got.Names["good/child0"] != "good: priority 0" {
			t.Errorf("the channel received the names %v and the failures %v", got.Names, got.Failures)
		}
	})
}

// Notes in answers are logged, but not the same ones twice in a row.
func TestNotesAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeSource{}
		_, c := start(t, configOf(nil, "", s))
		defer c.Close()
		for i, step := range []struct {
			notes []string
			want  int
		}{{nil, 0}, {[]string{"a is ignored", "b is ignored"}, 1}, {[]string{"a is ignored", "b is ignored"}, 0}, {nil, 0}, {[]string{"a is ignored", "b is ignored"}, 1}} {
			logged.Take()
			a := answerOf(i + 1)
			a.Notes = step.notes
			_ = s.Update(a)
			synctest.Wait()
			if got := logged.Take(); strings.Count(got, "x: a is ignored; b is ignored") != step.want {
				t.Errorf("step %d: logged %q, want the notes %d times", i, got, step.want)
			}
		}
	})
}

// Reports are counted under the name of the mechanism or, if it has none, the scheme. Those of a
// list count for the mechanism whose source sent the list. After Close, nothing is counted.
func TestReportsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, name := range []string{"", "whole"} {
			s, inner, removed := &fakeSource{}, &fakeSource{}, &fakeSource{}
			recorder := &lbtest.Recorder{}
			config := configOf(nil, name, s)
			config.Recorder, config.Label = recorder, "x:///y"
			cc, c := start(t, config)
			s.Fail(errors.New("down"))
			_ = s.Update(answerOf(1))
			_ = s.Update(answerOf(1))
			synctest.Wait()
			s.Rejected(errors.New("no good"))
			s.Mechanisms([]discovery.Mechanism{{Name: "inner", Source: inner}, {Name: "removed", Source: removed}})
			synctest.Wait()
			s.Mechanisms([]discovery.Mechanism{{Name: "inner", Source: inner}})
			_ = inner.Update(answerOf(2))
			synctest.Wait()
			removed.Fail(errors.New("gone"))
			if removed.Remembered() != nil {
				t.Error("a source that was removed may still use old lookups")
			}
			synctest.Wait()
			c.events.Do(func() {
				inner.Fail(errors.New("down"))
				c.Close()
			})
			synctest.Wait()
			content := "understudy.source.updates x:///y " + strings.Replace(name, "", "x", 1-min(1, len(name))) + " "
			if got, want := fmt.Sprint(recorder.Counts()), fmt.Sprint(map[string]int64{content + "accepted": 4, content + "refused": 1, content + "failed": 1}); got != want {
				t.Errorf("counted %s, want %s", got, want)
			}
			if cc.last() == "nothing" {
				t.Error("the channel got nothing")
			}
		}
	})
}

// listening is a source that wants to know of re-resolutions and failures.
type listening struct {
	fakeSource
	called, failed, starts int
	confirmed              time.Time
}

func (s *listening) Start(r *discovery.Receiver) (discovery.Started, error) {
	s.starts++
	started, err := s.fakeSource.Start(r)
	started.ResolveNow, started.EndpointsFailed = func() { s.called++ }, func() { s.failed++ }
	started.Confirmed = func() time.Time { return s.confirmed }
	return started, err
}

// A failed connection makes the source of its endpoint look again, or tells it of the failure if
// the policy ignores requests for re-resolution.
func TestSourceReceivesLocationAndRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := &listening{}, &listening{}
		cc, c := start(t, several(discovery.Mechanism{Name: "one", Source: one}, discovery.Mechanism{Name: "two", Source: two}))
		defer c.Close()
		_ = one.Update(answerOf(1))
		_ = two.Update(answerOf(2))
		cc.last()
		if !strings.Contains(cc.config(), `"ignoreReresolutionRequests":false`) || strings.Contains(cc.config(), `"ignoreReresolutionRequests":true`) {
			t.Errorf("the sources listen to requests, but the policies do not pass them on: %s", cc.config())
		}
		failed := stateattr.ResolveNow(cc.states[len(cc.states)-1])
		failed("two/child0", false)
		failed("nobody", false)
		synctest.Wait()
		if got := fmt.Sprint(one.called, one.failed, two.called, two.failed); got != "0 0 1 1" {
			t.Errorf("the sources were asked and told %s times, want 0 0 1 1", got)
		}
	})
}
