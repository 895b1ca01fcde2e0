package lbconfig

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

var parsers = map[string]func(raw []byte) (any, error){
	"priority":             parseAs[Priority]("priority"),
	"weighted_target":      parseAs[WeightedTarget]("weighted_target"),
	"weighted_round_robin": parseAs[WeightedRoundRobin]("weighted_round_robin"),
	"drop":                 parseAs[Drop]("drop"),
	"pick_first":           parseAs[PickFirst]("pick_first"),
	"outlier_detection":    parseAs[OutlierDetection]("outlier_detection"),
}

func parseAs[T any](policy string) func(raw []byte) (any, error) {
	return func(raw []byte) (any, error) {
		c := new(T)
		return c, Parse(policy, raw, c)
	}
}

const (
	stub        = `[{"not_there": {}}, {"lbconfig_stub": {"id": "a"}}]`
	fullChild   = `{"config": ` + stub + `, "ignoreReresolutionRequests": true}`
	fullTarget  = `{"weight": 7, "childPolicy": ` + stub + `}`
	fullDrop    = `{"dropCategories": [{"category": "lb", "requestsPerMillion": 7}], "childPolicy": ` + stub + `}`
	fullTargets = `{"targets": {"a": ` + fullTarget + `}, "removedChildRetention": "60s", "startPoint": "random"}`
	fullRobin   = `{"startPoint": "random", "slowStart": {"window": "30s", "aggression": 1.5, "minWeightPercent": 0}}`
	fullFirst   = `{"shuffleAddressList": true}`
	fullOutlier = `{"interval": "1s", "baseEjectionTime": "2s", "maxEjectionTime": "3s", "maxEjectionPercent": 4,
		"successRateEjection": {"stdevFactor": 5, "enforcementPercentage": 6, "minimumHosts": 7, "requestVolume": 8},
		"failurePercentageEjection": {"threshold": 9, "enforcementPercentage": 10, "minimumHosts": 11, "requestVolume": 12},
		"consecutiveFailuresEjection": {"failures": 13, "enforcementPercentage": 14},
		"failureCodes": ["ABORTED", "UNAVAILABLE"], "childPolicy": ` + stub + `}`
	fullFailure = `{"children": {"a": ` + fullChild + `}, "priorities": ["a"], "failoverTimeout": "1s",
		"childRetention": "2s", "removedChildRetention": "3s",
		"warmStandby": 2, "sourcePriorities": [1], "overflow": true, "ramp": "7s", "perPriority": true}`
)

var full = map[string]string{
	"priority":             fullFailure,
	"weighted_target":      fullTargets,
	"weighted_round_robin": fullRobin,
	"drop":                 fullDrop,
	"pick_first":           fullFirst,
	"outlier_detection":    fullOutlier,
}

// Each field must stay the same when a configuration is marshaled and parsed again. Topology
// marshals configurations for the policies, and grpc-go's cds policy marshals what it has parsed.
func TestEveryFieldSurvivesRoundTrips(t *testing.T) {
	for policy, parse := range parsers {
		first, err := parse([]byte(full[policy]))
		if err != nil {
			t.Fatal(err)
		}
		wantNoZero(t, policy, reflect.ValueOf(first).Elem())
		again := first
		for range 8 {
			raw, err := json.Marshal(again)
			if err != nil {
				t.Fatal(err)
			}
			if again, err = parse(raw); err != nil {
				t.Fatalf("%s: %v", raw, err)
			}
		}
		a, _ := json.Marshal(first)
		b, _ := json.Marshal(again)
		if string(a) != string(b) {
			t.Errorf("%s: %s became %s", policy, a, b)
		}
	}
}

func wantNoZero(t *testing.T, policy string, v reflect.Value) {
	t.Helper()
	for _, f := range fields(v.Type()) {
		if v.Field(f.index).IsZero() && f.name != "minWeightPercent" {
			t.Errorf("%s: %s is zero: give it a value in full", policy, f.name)
		}
	}
}

// The case of a field name must not matter, as in grpc-go's own policies.
func TestFieldNamesIgnoreCase(t *testing.T) {
	c := &Priority{}
	if err := Parse("priority", []byte(`{"FailoverTimeout": "3s"}`), c); err != nil || time.Duration(c.FailoverTimeout) != 3*time.Second {
		t.Errorf("failoverTimeout = %v, %v; want 3s", time.Duration(c.FailoverTimeout), err)
	}
}

// An error must be one short line that begins with the policy's name and does not repeat it.
func TestErrors(t *testing.T) {
	long := strings.Repeat("long\n", 10_000)
	for policy, parse := range parsers {
		for _, raw := range []string{``, `null`, `[]`, `1`, `"` + long, `{"x": 1`, `"` + strings.Repeat("x", 10_000) + `"`} {
			if _, err := parse([]byte(raw)); err == nil || !strings.HasPrefix(err.Error(), policy+": ") ||
				strings.Contains(err.Error(), "\n") || len(err.Error()) > 300 || !strings.HasSuffix(err.Error(), "given, want a JSON object") {
				t.Errorf("%s: %.80q: error %v", policy, raw, err)
			}
		}
	}
	inner := `[{"lbconfig_drop": {}}]`
	for policy, raw := range map[string]string{
		"priority":        `{"children": {"a": {"config": ` + inner + `}}}`,
		"weighted_target": `{"targets": {"a": {"weight": 1, "childPolicy": ` + inner + `}}}`,
	} {
		want := `"].` + map[string]string{"priority": "config", "weighted_target": "childPolicy"}[policy] + ": drop: childPolicy: none given, want a list of policies"
		if _, err := parsers[policy]([]byte(raw)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q in it", raw, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, raw := range full {
		f.Add(raw)
	}
	f.Add(`{"priorities": [], "children": null, "childRetention": "292y", "slowStart": {"window": "0.000000001s"}}`)
	f.Fuzz(func(t *testing.T, raw string) {
		for policy, parse := range parsers {
			c, err := parse([]byte(raw))
			if err != nil {
				if strings.ContainsAny(err.Error(), "\n\r") {
					t.Errorf("%s: error %q", policy, err)
				}
				continue
			}
			once, err := json.Marshal(c)
			if err != nil {
				t.Fatal(err)
			}
			again, err := parse(once)
			if err != nil {
				t.Fatalf("%s: %s became %s: %v", policy, raw, once, err)
			}
			if twice, _ := json.Marshal(again); string(twice) != string(once) {
				t.Errorf("%s: %s became %s and then %s", policy, raw, once, twice)
			}
		}
	})
}
