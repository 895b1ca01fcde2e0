package lbconfig

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/serviceconfig"

	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

// parsedStub is a policy with a configuration of this package.
type parsedStub[T any] struct{ *lbtest.StubBuilder }

func (s parsedStub[T]) ParseConfig(raw json.RawMessage) (serviceconfig.LoadBalancingConfig, error) {
	c := new(T)
	return any(c).(serviceconfig.LoadBalancingConfig), Parse(s.PolicyName, raw, c)
}

func init() {
	balancer.Register(parsedStub[PickFirst]{&lbtest.StubBuilder{PolicyName: "understudy_pick_first"}})
	balancer.Register(parsedStub[Priority]{&lbtest.StubBuilder{PolicyName: "lbconfig_priority"}})
	balancer.Register(parsedStub[WeightedTarget]{&lbtest.StubBuilder{PolicyName: "lbconfig_target"}})
	balancer.Register(parsedStub[OutlierDetection]{&lbtest.StubBuilder{PolicyName: "lbconfig_outlier"}})
}

// rangeTest is the configuration of a policy and the expected error, or "" if it is in range.
type rangeTest struct{ raw, want string }

const (
	children = `"children": {"a": {"config": ` + stub + `}, "b": {"config": ` + stub + `}}`
	ejecting = `"consecutiveFailuresEjection": {}, "childPolicy": ` + stub
	first    = `[{"understudy_pick_first": {}}]`
)

var rangeTests = map[string][]rangeTest{
	"priority": {
		{`{"children": []}`, "children: [] given, want a JSON object"},
		{`{"children": {"a": 1}}`, `children["a"]: 1 given, want a JSON object`},
		{`{"children": {"a": null}}`, `children["a"]: null given, want a JSON object`},
		{`{"children": {"a": {"config": null}}}`, `children["a"].config: none given`},
		{`{"children": {"a": {"config": [{"nobody": {}}]}}}`, `children["a"].config: none of the policies is registered: "nobody"`},
		{`{"children": {"a": {"config": ` + stub + `, "ignoreReresolutionRequests": "yes"}}}`, `children["a"].ignoreReresolutionRequests: "yes" given, want true or false`},
		{`{` + children + `, "priorities": "a"}`, `priorities: "a" given, want a JSON list`},
		{`{"failoverTimeout": 10}`, `failoverTimeout: 10 given, want a duration such as "10s"`},
		{`{"failoverTimeout": "soon"}`, `failoverTimeout: "soon" given`},
		{`{"childRetention": "-1s"}`, `childRetention: "-1s" given, want a duration such as "10s" that is not negative`},
		{`{"childRetention": "0s", "new": {}}`, ""},
		{`{"removedChildRetention": {}}`, "removedChildRetention: {} given"},
		{`{"warmStandby": -1}`, "warmStandby: -1 given, want a whole number from 0"},
		{`{"warmStandby": 129}`, "warmStandby: 129 given, want 0 to 128"},
		{`{"failoverTimeout": "0s"}`, `failoverTimeout: "0s" given, want a positive duration`},
		{`{"failoverTimeout": "0.000000001s"}`, ""},
		{`{"ramp": "2h"}`, "ramp"},
		{`{"children": {"": {"config": ` + stub + `}}}`, "children: a child has an empty name"},
		{`{"children": {"a": {}}}`, `children["a"].config: none given`},
		{`{` + children + `, "priorities": ["a", ""]}`, "priorities[1]: an empty name given"},
		{`{` + children + `, "priorities": ["a", "b", "a"]}`, `priorities[2]: "a" given, which is already priorities[0]`},
		{`{` + children + `, "priorities": ["b", "c"]}`, `priorities[1]: "c" given, which is not in children`},
		{`{` + children + `, "priorities": ["b", "a"]}`, ""},
		{`{"sourcePriorities": [0]}`, "sourcePriorities: [0] given, want none, or a number for each of the 0 priorities"},
		{`{` + children + `, "priorities": ["a", "b"], "sourcePriorities": [0]}`, "sourcePriorities: [0] given"},
		{`{` + children + `, "priorities": ["a", "b"], "sourcePriorities": [1, 0]}`, "sourcePriorities: [1 0] given"},
		{`{` + children + `, "priorities": ["a", "b"], "sourcePriorities": [0, 0]}`, ""},
		{`{` + children + `, "priorities": ["a", "b"], "sourcePriorities": []}`, ""},
	},
	"weighted_target": {
		{`{"targets": []}`, "targets: [] given, want a JSON object"},
		{`{"targets": {"a": {"weight": -1, "childPolicy": ` + stub + `}}}`, `targets["a"].weight: -1 given, want a whole number from 0 to 4294967295`},
		{`{"targets": {"a": {"weight": 4294967296, "childPolicy": ` + stub + `}}}`, `targets["a"].weight: 4294967296 given`},
		{`{"targets": {"a": {"weight": 1, "childPolicy": [{"no_such": {}}]}}}`, `targets["a"].childPolicy: none of the policies is registered: "no_such"`},
		{`{"removedChildRetention": "-1s"}`, `removedChildRetention: "-1s" given`},
		{`{"targets": {"a": {"weight": 0, "childPolicy": ` + stub + `}}}`, `targets["a"].weight: 0 or none given, want 1 to 4294967295`},
		{`{"targets": {"a": {"weight": 1}}}`, `targets["a"].childPolicy: none given`},
		{`{"targets": {"a": {"weight": 4294967294, "childPolicy": ` + stub + `}, "b": {"weight": 1, "childPolicy": ` + stub + `}}}`, ""},
		{`{"targets": {"a": {"weight": 4294967295, "childPolicy": ` + stub + `}, "b": {"weight": 1, "childPolicy": ` + stub + `}}}`, "targets: the weights sum to 4294967296, want at most 4294967295"},
		{`{"startPoint": "spec"}`, ""},
		{`{"startPoint": "here"}`, `startPoint: "here" given, want "spec" or "random"`},
	},
	"weighted_round_robin": {
		{`{"startPoint": null, "slowStart": null, "unknown": [1]}`, ""},
		{`{"startPoint": 1}`, "startPoint: 1 given, want a string"},
		{`{"slowStart": true}`, "slowStart: true given, want a JSON object"},
		{`{"slowStart": {"window": 3}}`, "slowStart.window: 3 given, want a duration"},
		{`{"slowStart": {"window": "0s"}}`, `slowStart.window: "0s" or none given`},
		{`{"slowStart": {"window": "-1s"}}`, "slowStart.window: "},
		{`{"slowStart": {"window": "1s", "aggression": "1"}}`, `slowStart.aggression: "1" given, want a number`},
		{`{"slowStart": {}}`, `slowStart.window: "0s" or none given, want a positive duration`},
		{`{"slowStart": {"window": "0.000000001s"}}`, ""},
		{`{"slowStart": {"window": "1s", "aggression": 0}}`, "slowStart.aggression: 0 given, want a number above 0"},
		{`{"slowStart": {"window": "1s", "aggression": 0.1}}`, ""},
		{`{"slowStart": {"window": "1s", "minWeightPercent": -0.1}}`, "slowStart.minWeightPercent: -0.1 given, want a number from 0 to 100"},
		{`{"slowStart": {"window": "1s", "minWeightPercent": 0}}`, ""},
		{`{"slowStart": {"window": "1s", "minWeightPercent": 100}}`, ""},
		{`{"slowStart": {"window": "1s", "minWeightPercent": 100.1}}`, "slowStart.minWeightPercent: 100.1 given"},
		{`{"slowStart": {"window": "1s", "minWeightPercent": 1e6}}`, "slowStart.minWeightPercent: 1000000 given"},
	},
	"drop": {
		{`{"childPolicy": [{"no_such": {}}]}`, "childPolicy: none of the policies is registered"},
		{`{"dropCategories": [{"requestsPerMillion": "1"}], "childPolicy": ` + stub + `}`, `dropCategories[0].requestsPerMillion: "1" given, want a whole number`},
		{`{}`, "childPolicy: none given, want a list of policies"},
		{`{"dropCategories": [{"requestsPerMillion": 1000000}], "childPolicy": ` + stub + `}`, ""},
		{`{"dropCategories": [{"requestsPerMillion": 1000001}], "childPolicy": ` + stub + `}`, "dropCategories[0].requestsPerMillion: 1000001 given, want 0 to 1000000"},
	},
	"pick_first": {
		{`{"shuffleAddressList": null, "later": [1]}`, ""},
		{`{"shuffleAddressList": "yes"}`, `shuffleAddressList: "yes" given, want true or false`},
		{`{"shuffleAddressList": 1}`, "shuffleAddressList: 1 given, want true or false"},
	},
	"outlier_detection": {
		{`{"interval": "-1s", "childPolicy": ` + stub + `}`, `interval: "-1s" given, want a duration such as "10s" that is not negative`},
		{`{"baseEjectionTime": "300y", "childPolicy": ` + stub + `}`, `baseEjectionTime: "300y" given, want a duration such as "10s"`},
		{`{"maxEjectionTime": "9999999999999s", "childPolicy": ` + stub + `}`, `maxEjectionTime: "9999999999999s" given, want a duration such as "10s"`},
		{`{"interval": "0s", ` + ejecting + `}`, `interval: "0s" given, want a duration of 1ms and more, such as "10s"`},
		{`{"interval": "1ns", ` + ejecting + `}`, `interval: "1ns" given, want a duration of 1ms and more, such as "10s"`},
		{`{"interval": "315576000000s", ` + ejecting + `}`, ""}, // 10,000 years, the longest duration, means that A50 is disabled
		{`{}`, "childPolicy: none given"},
		{`{"maxEjectionPercent": 100, ` + ejecting + `}`, ""},
		{`{"maxEjectionPercent": 101, ` + ejecting + `}`, "maxEjectionPercent: 101 given, want 0 to 100"},
		{`{"interval": "0.001s", ` + ejecting + `}`, ""},
		{`{"interval": "0.000999999s", ` + ejecting + `}`, `interval: "999.999µs" given, want a duration of 1ms and more`},
		{`{"interval": "0s", "childPolicy": ` + stub + `}`, ""},
		{`{"successRateEjection": {"enforcementPercentage": 101}, ` + ejecting + `}`, "successRateEjection.enforcementPercentage: 101 given"},
		{`{"failurePercentageEjection": {"threshold": 101}, ` + ejecting + `}`, "failurePercentageEjection.threshold: 101 given"},
		{`{"failurePercentageEjection": {"enforcementPercentage": 101}, ` + ejecting + `}`, "failurePercentageEjection.enforcementPercentage: 101 given"},
		{`{"consecutiveFailuresEjection": {"failures": 0}, "childPolicy": ` + stub + `}`, "consecutiveFailuresEjection.failures: 0 given, want 1 or more"},
		{`{"consecutiveFailuresEjection": {"failures": 1}, "childPolicy": ` + stub + `}`, ""},
		{`{"consecutiveFailuresEjection": {"enforcementPercentage": 101}, "childPolicy": ` + stub + `}`, "consecutiveFailuresEjection.enforcementPercentage: 101 given"},
		{`{"failureCodes": ["OK"], ` + ejecting + `}`, `failureCodes[0]: "OK" given`},
		{`{"failureCodes": ["ABORTED", "NONE"], ` + ejecting + `}`, `failureCodes[1]: "NONE" given`},
		{`{"childPolicy": ` + first + `}`, ""},
		{`{"successRateEjection": {}, "childPolicy": ` + first + `}`, "childPolicy: understudy_pick_first given, which would not notice"},
		{`{"failurePercentageEjection": {}, "childPolicy": [{"lbconfig_drop": {"childPolicy": ` + first + `}}]}`, "childPolicy: understudy_pick_first below lbconfig_drop given"},
		{`{"consecutiveFailuresEjection": {}, "childPolicy": [{"lbconfig_outlier": {"childPolicy": ` + first + `}}]}`, "childPolicy: understudy_pick_first below lbconfig_outlier given"},
		{`{"consecutiveFailuresEjection": {}, "childPolicy": [{"lbconfig_priority": {"children": {"a": {"config": ` + first + `}}}}]}`, "childPolicy: understudy_pick_first below lbconfig_priority given"},
		{`{"consecutiveFailuresEjection": {}, "childPolicy": [{"lbconfig_target": {"targets": {"a": {"weight": 1, "childPolicy": [{"lbconfig_drop": {"childPolicy": ` + first + `}}]}, "b": {"weight": 1, "childPolicy": ` + stub + `}}}}]}`,
			"childPolicy: understudy_pick_first below lbconfig_drop below lbconfig_target given"},
	},
}

// A value at a limit must be accepted. A value past it must be refused, with an error that names
// the field.
func TestRanges(t *testing.T) {
	for policy, tests := range rangeTests {
		for _, test := range tests {
			switch _, err := parsers[policy]([]byte(test.raw)); {
			case test.want == "" && err != nil:
				t.Errorf("%s: %s is refused: %v", policy, test.raw, err)
			case test.want != "" && (err == nil || !strings.HasPrefix(err.Error(), policy+": "+test.want)):
				t.Errorf("%s: %s: error %v, want %q", policy, test.raw, err, test.want)
			}
		}
	}
}

// An error quotes at most 80 characters of the given value.
func TestErrorsQuoteBeginning(t *testing.T) {
	for given, want := range map[string]string{
		"":                       "nothing given",
		strings.Repeat("ä", 80):  strings.Repeat("ä", 80) + " given",
		strings.Repeat("ä", 81):  strings.Repeat("ä", 80) + "… given",
		"[\n\t1,\n\t\"\xff\"\n]": "[ 1, \"\uFFFD\" ] given",
	} {
		if _, err := parsers["drop"]([]byte(given)); err == nil || err.Error() != "drop: "+want+", want a JSON object" {
			t.Errorf("%q: error %v, want %q in it", given, err, want)
		}
	}
}

// New configurations must have the same defaults as parsed ones.
func TestNewConfigurationsHaveDefaults(t *testing.T) {
	sameDefaults(t, `{}`, New[Priority]())
	sameDefaults(t, `{}`, New[WeightedRoundRobin]())
	sameDefaults(t, `{}`, New[SuccessRateEjection]())
	sameDefaults(t, `{}`, New[FailurePercentageEjection]())
	sameDefaults(t, `{}`, New[ConsecutiveFailuresEjection]())
	slow := New[SlowStart]()
	slow.Window = Duration(time.Second)
	sameDefaults(t, `{"window": "1s"}`, slow)
	outliers := New[OutlierDetection]()
	outliers.ChildPolicy = Policy{Builder: balancer.Get("understudy_pick_first"), Config: &PickFirst{}, raw: json.RawMessage(`{}`)}
	sameDefaults(t, `{"childPolicy": `+first+`}`, outliers)
}

func sameDefaults[T any](t *testing.T, raw string, given *T) {
	t.Helper()
	parsed := new(T)
	if err := Parse("x", []byte(raw), parsed); err != nil || !reflect.DeepEqual(parsed, given) {
		t.Errorf("%s is parsed as %+v, %v; New returns %+v", raw, parsed, err, given)
	}
}
