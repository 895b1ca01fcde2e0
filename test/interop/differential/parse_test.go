package differential

import (
	"encoding/json"
	"maps"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/grpc/balancer"

	"github.com/understudy-lb/understudy/policy/pickfirst"
)

// parserPair is a pair of policies whose parsers are compared. differences has a pattern for each
// known difference. The pattern matches our error or, if only our parser accepts a configuration,
// the configuration.
type parserPair struct {
	ours, theirs string
	differences  map[string]*regexp.Regexp
}

// parserPairs lists the differences, which docs/differences.md describes.
var parserPairs = []parserPair{
	{"understudy_outlier_detection", "outlier_detection_experimental", map[string]*regexp.Regexp{
		"an interval below 1ms":               regexp.MustCompile(`want a duration of 1ms and more`),
		"no child, or no object":              regexp.MustCompile(`childPolicy: none given|null given, want a JSON object`),
		"a null duration":                     regexp.MustCompile(`(interval|EjectionTime)":null`),
		"a duration in one of Go's own forms": regexp.MustCompile(`"15m"|"1ms"|"0.0000000001s"`),
	}},
	{"understudy_priority", "priority_experimental", map[string]*regexp.Regexp{
		"p-config, a child without policy": regexp.MustCompile(`config: none given|null given, want a JSON object`),
		"p-config, given twice":            regexp.MustCompile(`which is already priorities`),
		"p-config, no priority names it":   regexp.MustCompile(`"priorities":(null|\[\])`),
	}},
	{"understudy_weighted_target", "weighted_target_experimental", map[string]*regexp.Regexp{
		"w-config, a weight of 0":           regexp.MustCompile(`weight: 0 or none given`),
		"w-config, a target without policy": regexp.MustCompile(`childPolicy: none given|null given, want a JSON object`),
	}},
	{pickfirst.Name, "pick_first", map[string]*regexp.Regexp{
		"no object": regexp.MustCompile(`^pick_first: null given`),
	}},
}

var (
	durations = []string{`"0s"`, `"-0s"`, `"1s"`, `"1.5s"`, `".5s"`, `"1.s"`, `"0.001s"`, `"0.000000001s"`, `"0.0000000001s"`, `"-1s"`,
		`"-0.000000001s"`, `"9223372036s"`, `"9223372037s"`, `"315576000000s"`, `"315576000001s"`, `"15m"`, `"1ms"`, `"1"`, `"s"`, `""`, `"1e3s"`, `1`, `null`, `true`, `{}`, `[]`}
	numbers  = []string{`0`, `1`, `99`, `100`, `101`, `4294967295`, `4294967296`, `-1`, `1.5`, `1e1`, `"1"`, `null`, `true`, `{}`, `[]`}
	values   = []string{`null`, `{}`, `[]`, `1`, `"x"`, `true`, `{"unknown":1}`}
	lists    = append(values, `["a"]`, `["a","a"]`, `["b"]`, `["a","b"]`, `[1]`, `[null]`, `[""]`, `["a",null]`)
	policies = append(values, `[{}]`, `[{"unknown_policy":{}}]`, `[{"unknown_policy":{}},{"round_robin":{}}]`, `[{"round_robin":{}},{"unknown_policy":{}}]`,
		`[{"round_robin":{},"pick_first":{}}]`, `[{"round_robin":null}]`, `[{"round_robin":{"x":1}}]`, `[null]`, `[1]`, `[{"pick_first":{"shuffleAddressList":1}}]`)
	wholeConfigs = []string{`null`, `[]`, `1`, ``, `{}`, `{"a":1}`, `{`}
)

// fields has, for each policy, configurations with the placeholder %s, and the values that replace
// it.
var fields = map[string]map[string][]string{
	"understudy_outlier_detection": {
		`{"interval":%s,C}`: durations, `{"baseEjectionTime":%s,C}`: durations, `{"maxEjectionTime":%s,C}`: durations,
		`{"interval":%s,"failurePercentageEjection":{},C}`: durations, `{"maxEjectionPercent":%s,C}`: numbers,
		`{"successRateEjection":{"stdevFactor":%s},C}`: numbers, `{"successRateEjection":{"enforcementPercentage":%s},C}`: numbers,
		`{"successRateEjection":{"minimumHosts":%s},C}`: numbers, `{"successRateEjection":{"requestVolume":%s},C}`: numbers,
		`{"failurePercentageEjection":{"threshold":%s},C}`: numbers, `{"failurePercentageEjection":{"enforcementPercentage":%s},C}`: numbers,
		`{"failurePercentageEjection":{"minimumHosts":%s},C}`: numbers, `{"failurePercentageEjection":{"requestVolume":%s},C}`: numbers,
		`{"successRateEjection":%s,C}`: values, `{"failurePercentageEjection":%s,C}`: values, `{"unknown":%s,C}`: values,
		`{"childPolicy":%s}`: policies, `%s`: wholeConfigs,
	},
	"understudy_priority": {
		`{"children":{"a":{"config":R}},"priorities":%s}`: lists, `{"children":%s,"priorities":["a"]}`: values, `{"children":{"a":%s},"priorities":["a"]}`: values,
		`{"children":{"a":{"config":%s}},"priorities":["a"]}`:                                policies,
		`{"children":{"a":{"ignoreReresolutionRequests":%s,"config":R}},"priorities":["a"]}`: values, `%s`: wholeConfigs,
	},
	"understudy_weighted_target": {
		`{"targets":%s}`: values, `{"targets":{"a":%s}}`: values, `{"targets":{"a":{"weight":%s,"childPolicy":R}}}`: numbers,
		`{"targets":{"a":{"weight":1,"childPolicy":%s}}}`: policies, `%s`: wholeConfigs,
	},
	pickfirst.Name: {`{"shuffleAddressList":%s}`: values, `{"unknown":%s}`: values, `%s`: wholeConfigs},
}

func parse(name, config string) (written map[string]any, err error) {
	parsed, err := balancer.Get(name).(balancer.ConfigParser).ParseConfig(json.RawMessage(config))
	if err == nil {
		text, _ := json.Marshal(parsed)
		_ = json.Unmarshal(text, &written)
	}
	return written, err
}

// Our parsers and gRPC-Go's must accept the same values of each field, and return the same result.
// The values include limits, wrong types, unknown fields and null. docs/differences.md lists the
// exceptions.
func TestParsersAgree(t *testing.T) {
	given := 0
	for _, pair := range parserPairs {
		seen := map[string]bool{}
		for form, values := range fields[pair.ours] {
			for _, value := range values {
				given++
				config := strings.NewReplacer("%s", value, "C", `"childPolicy":[{"round_robin":{}}]`, "R", `[{"round_robin":{}}]`).Replace(form)
				ours, err := parse(pair.ours, config)
				theirs, theirErr := parse(pair.theirs, config)
				switch {
				case err == nil && theirErr == nil:
					sameConfig(t, config, ours, theirs)
				case (err == nil) != (theirErr == nil):
					about := config
					if err != nil {
						about = err.Error()
					}
					if why := pair.difference(about); why == "" {
						t.Errorf("%s: %s\nours: %v, gRPC-Go's: %v", pair.ours, config, err, theirErr)
					} else {
						seen[why] = true
					}
				}
			}
		}
		for why := range maps.Keys(pair.differences) {
			if !seen[why] {
				t.Errorf("%s: both parsers agree on %q, so the difference is obsolete", pair.ours, why)
			}
		}
	}
	t.Logf("%d configurations", given)
}

func (p parserPair) difference(about string) string {
	for why, pattern := range p.differences {
		if pattern.MatchString(about) {
			return why
		}
	}
	return ""
}

// sameConfig compares two marshaled configurations. gRPC-Go does not marshal fields that are zero.
// sameConfig skips the enforcement percentage, because its default is a known difference.
func sameConfig(t *testing.T, config string, ours, theirs map[string]any) {
	t.Helper()
	for field, theirValue := range theirs {
		ourValue := ours[field]
		if theirFields, ok := theirValue.(map[string]any); ok {
			if ourFields, ok := ourValue.(map[string]any); ok && field != "children" && field != "targets" {
				sameConfig(t, config, ourFields, theirFields)
				continue
			}
			continue
		}
		if field != "enforcementPercentage" && field != "childPolicy" && !reflect.DeepEqual(ourValue, theirValue) {
			t.Errorf("%s: %s is %v, gRPC-Go's %v", config, field, ourValue, theirValue)
		}
	}
	for field, here := range ours {
		if there, given := theirs[field]; !given && field != "enforcementPercentage" && (field == "threshold" || field == "interval" || field == "maxEjectionPercent") {
			if here != "0s" && here != 0.0 {
				t.Errorf("%s: %s is %v, gRPC-Go's %v", config, field, here, there)
			}
		}
	}
}
