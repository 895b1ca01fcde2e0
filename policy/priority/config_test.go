package priority

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"google.golang.org/grpc/balancer"
	_ "google.golang.org/grpc/balancer/roundrobin" // registers round_robin

	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

func init() { balancer.Register(&lbtest.StubBuilder{PolicyName: "priority_test_stub"}) }

const stub = `{"config": [{"not_registered": {}}, {"priority_test_stub": {"id": "x"}}]}`

func TestParseConfigDefaults(t *testing.T) {
	c := parse(`{}`)
	if len(c.Children) != 0 || len(c.Priorities) != 0 {
		t.Errorf("config = %+v, want no children", c)
	}
	got := []lbconfig.Duration{c.FailoverTimeout, c.ChildRetention, c.RemovedChildRetention}
	want := []lbconfig.Duration{lbconfig.Duration(10 * time.Second), lbconfig.Duration(15 * time.Minute), lbconfig.Duration(15 * time.Minute)}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("durations = %v, want %v", got, want)
	}
}

func TestParseConfig(t *testing.T) {
	c := parse(`{"children": {"a": ` + stub + `, "b": {"config": [{"priority_test_stub": {"id": "y"}}], "ignoreReresolutionRequests": true, "new": 1}, "spare": ` + stub + `},
		"priorities": ["b", "a"], "failoverTimeout": "2.5s", "childRetention": "0s", "removedChildRetention": "60s", "ramp": "30s", "new": {}}`)
	if got := c.Children["a"].Config; got.Name() != "priority_test_stub" || got.Config.(*lbtest.StubConfig).ID != "x" {
		t.Errorf("child a has %s with %+v", got.Name(), got.Config)
	}
	if c.Children["a"].IgnoreReresolutionRequests || !c.Children["b"].IgnoreReresolutionRequests {
		t.Error("ignoreReresolutionRequests has the wrong value")
	}
	if !reflect.DeepEqual(c.Priorities, []string{"b", "a"}) {
		t.Errorf("priorities = %q", c.Priorities)
	}
	core := coreConfig(c)
	if core.FailoverTimeout != 2500*time.Millisecond || core.ChildRetention != 0 || core.RemovedChildRetention != time.Minute || len(core.Children) != 3 {
		t.Errorf("the core's configuration is %+v", core)
	}
}

// grpc-go's cds policy marshals a parsed configuration and parses it again. The result must be the
// same.
func TestConfigSurvivesRoundTrips(t *testing.T) {
	first, last := lbtest.CheckRoundTrips(t, newBuilder(Name), `{"children": {"a": {"config": [{"priority_test_stub": {"id": "x"}}], "ignoreReresolutionRequests": true}, "b": {"config": [{"round_robin": {}}]}},
		"priorities": ["b", "a"], "failoverTimeout": "2.5s", "ramp": "30s"}`)
	want, got := first.(*lbconfig.Priority), last.(*lbconfig.Priority)
	if !reflect.DeepEqual(got.Priorities, want.Priorities) || got.FailoverTimeout != want.FailoverTimeout || got.Ramp != want.Ramp || len(got.Children) != 2 {
		t.Errorf("after 8 round trips: %+v, want %+v", got, want)
	}
	for name, child := range want.Children {
		if g := got.Children[name]; g.Config.Name() != child.Config.Name() || !reflect.DeepEqual(g.Config.Config, child.Config.Config) || g.IgnoreReresolutionRequests != child.IgnoreReresolutionRequests {
			t.Errorf("child %s after 8 round trips: %+v, want %+v", name, g, child)
		}
	}
}

func TestParseConfigNamesTheField(t *testing.T) {
	one := `"children": {"a": ` + stub + `}`
	lbtest.CheckConfigErrors(t, newBuilder(Name), "priority: ", map[string]string{
		``:                                      `nothing given, want a JSON object`,
		`[]`:                                    `[] given, want a JSON object`,
		`null`:                                  `null given, want a JSON object`,
		`{"children": []}`:                      `children: [] given, want a JSON object`,
		`{"children": {"a": 1}}`:                `children["a"]: 1 given, want a JSON object`,
		`{"children": {"a": null}}`:             `children["a"]: null given, want a JSON object`,
		`{"children": {"": ` + stub + `}}`:      `children: a child has an empty name`,
		`{"children": {"a": {}}}`:               `children["a"].config: none given`,
		`{"children": {"a": {"config": null}}}`: `children["a"].config: none given`,
		`{"children": {"a": {"config": []}}}`:   `children["a"].config: names no policy`,
		`{"children": {"a": {"config": {}}}}`:   `children["a"].config: {} given, want a list of policies`,
		`{"children": {"a": {"config": [{"nobody": {}}]}}}`:                                                  `children["a"].config: none of the policies is registered: "nobody"`,
		`{"children": {"a": {"config": [{"b": {}, "c": {}}]}}}`:                                              `children["a"].config: entry 0 names 2 policies`,
		`{"children": {"a": {"config": [{"priority_test_stub": {"reject": true}}]}}}`:                        `children["a"].config: priority_test_stub: stub "" rejects`,
		`{"children": {"a": {"config": [{"priority_test_stub": {}}], "ignoreReresolutionRequests": "yes"}}}`: `children["a"].ignoreReresolutionRequests: "yes" given, want true or false`,
		`{` + one + `, "priorities": "a"}`:                                                                   `priorities: "a" given, want a JSON list`,
		`{` + one + `, "priorities": ["a", "b"]}`:                                                            `priorities[1]: "b" given, which is not in children`,
		`{` + one + `, "priorities": ["a", "a"]}`:                                                            `priorities[1]: "a" given, which is already priorities[0]`,
		`{` + one + `, "priorities": [""]}`:                                                                  `priorities[0]: an empty name given`,
		`{"failoverTimeout": 10}`:                                                                            `failoverTimeout: 10 given, want a duration such as "10s"`,
		`{"failoverTimeout": "soon"}`:                                                                        `failoverTimeout: "soon" given`,
		`{"failoverTimeout": "0s"}`:                                                                          `failoverTimeout: "0s" given, want a positive duration`,
		`{"childRetention": "-1s"}`:                                                                          `childRetention: "-1s" given, want a duration such as "10s" that is not negative`,
		`{"removedChildRetention": {}}`:                                                                      `removedChildRetention: {} given`,
		`{"warmStandby": -1}`:                                                                                `warmStandby: -1 given, want a whole number from 0`,
		`{"warmStandby": 129}`:                                                                               `warmStandby: 129 given, want 0 to 128`,
	})
}

func FuzzParseConfig(f *testing.F) {
	f.Add(`{"children": {"a": ` + stub + `}, "priorities": ["a"], "childRetention": "0.000000001s"}`)
	f.Add(`{"priorities": [], "children": null, "childRetention": "292y"}`)
	f.Fuzz(func(t *testing.T, raw string) {
		c, err := parseConfig([]byte(raw))
		if err != nil {
			return
		}
		again, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		got, err := parseConfig(again)
		if err != nil {
			t.Fatalf("%s became %s: %v", raw, again, err)
		}
		if third, _ := json.Marshal(got); string(third) != string(again) {
			t.Errorf("%s became %s and then %s", raw, again, third)
		}
	})
}

func parseConfig(raw []byte) (*lbconfig.Priority, error) {
	c, err := newBuilder(Name).(balancer.ConfigParser).ParseConfig(raw)
	if err != nil {
		return nil, err
	}
	return c.(*lbconfig.Priority), nil
}

func TestNewBuilderKeepsTheName(t *testing.T) {
	if got := newBuilder("priority_experimental").Name(); got != "priority_experimental" {
		t.Errorf("name = %q, want priority_experimental", got)
	}
	if balancer.Get(Name) == nil {
		t.Error("the policy is not registered")
	}
}
