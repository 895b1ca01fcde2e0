package messages

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/understudy-lb/understudy/internal/channel/topology"
	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
	_ "github.com/understudy-lb/understudy/policy/drop"
	_ "github.com/understudy-lb/understudy/policy/outlierdetection"
	_ "github.com/understudy-lb/understudy/policy/pickfirst"
	_ "github.com/understudy-lb/understudy/policy/priority"
	_ "github.com/understudy-lb/understudy/policy/weightedroundrobin"
	_ "github.com/understudy-lb/understudy/policy/weightedtarget"
)

func outliers(t testing.TB, text string) *clusterv3.OutlierDetection {
	t.Helper()
	parsed := new(clusterv3.OutlierDetection)
	if err := protojson.Unmarshal([]byte(text), parsed); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return parsed
}

func policyOf(t *testing.T, given *lbconfig.Priority, n int) string {
	t.Helper()
	var policy lbconfig.Policy
	if err := json.Unmarshal([]byte(lbtest.JSON(given)), &policy); err != nil {
		t.Fatal(err)
	}
	top := policy.Config.(*lbconfig.Priority)
	config, err := json.Marshal(top.Children[top.Priorities[n]].Config.Config)
	if err != nil {
		t.Fatal(err)
	}
	text, _, _ := strings.Cut(string(config), `,"childPolicy"`)
	return text + "}"
}

const (
	noOp        = `{"interval":"10s","baseEjectionTime":"30s","maxEjectionTime":"300s","maxEjectionPercent":10}`
	successRate = `"successRateEjection":{"stdevFactor":1900,"enforcementPercentage":100,"minimumHosts":5,"requestVolume":100}`
)

// "The message fields will be mapped to config fields as follows" (gRFC A50, "xDS Integration"),
// "all other fields will be ignored, and all unsupported algorithms will be treated as disabled".
// Missing fields must get the defaults of gRFC A50.
func TestOutlierDetectionMapping(t *testing.T) {
	for text, want := range map[string]string{
		`{}`: `{"interval":"10s","baseEjectionTime":"30s","maxEjectionTime":"300s","maxEjectionPercent":10,` + successRate + `}`,
		`{"interval":"0.001s","base_ejection_time":"2s","max_ejection_time":"3s","max_ejection_percent":4,
		  "success_rate_stdev_factor":5,"enforcing_success_rate":1,"success_rate_minimum_hosts":7,"success_rate_request_volume":8,
		  "failure_percentage_threshold":9,"enforcing_failure_percentage":10,"failure_percentage_minimum_hosts":11,"failure_percentage_request_volume":12}`: `{"interval":"0.001s","baseEjectionTime":"2s","maxEjectionTime":"3s","maxEjectionPercent":4,` +
			`"successRateEjection":{"stdevFactor":5,"enforcementPercentage":1,"minimumHosts":7,"requestVolume":8},` +
			`"failurePercentageEjection":{"threshold":9,"enforcementPercentage":10,"minimumHosts":11,"requestVolume":12}}`,
		// "If the enforcing_success_rate field is set to 0, the config success_rate_ejection field will
		// be null".
		`{"enforcing_success_rate":0,"success_rate_minimum_hosts":7}`: noOp,
		// "If the enforcing_failure_percent field is set to 0 or null, ..."
		`{"enforcing_success_rate":0,"enforcing_failure_percentage":0,"failure_percentage_minimum_hosts":1}`: noOp,
		`{"enforcing_success_rate":0,"enforcing_failure_percentage":1}`: `{"interval":"10s","baseEjectionTime":"30s","maxEjectionTime":"300s","maxEjectionPercent":10,` +
			`"failurePercentageEjection":{"threshold":85,"enforcementPercentage":1,"minimumHosts":5,"requestVolume":50}}`,
		`{"enforcing_success_rate":0,"consecutive_5xx":3,"enforcing_consecutive_5xx":100,"consecutive_gateway_failure":3}`: noOp,
		`{"max_ejection_percent":0,"max_ejection_time":"315576000000s"}`:                                                   `{"interval":"10s","baseEjectionTime":"30s","maxEjectionTime":"9223372036.854775807s","maxEjectionPercent":0,` + successRate + `}`,
	} {
		given := outliers(t, text)
		before := proto.CloneOf(given)
		read, _, err := ReadOutlierDetection(given)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		tree := topology.Plain("a", "", nil).With(false, read)
		if got := policyOf(t, configOf(tree), 0); got != want {
			t.Errorf("%s:\n%s, want\n%s", text, got, want)
		}
		if !proto.Equal(given, before) {
			t.Errorf("%s was modified", text)
		}
	}
}

// "If any of these requirements is violated, the Cluster resource should be NACKed" (gRFC A50, "xDS
// Validation"). The error must list all violations.
func TestOutlierDetectionValidation(t *testing.T) {
	for text, want := range map[string]string{
		`{"interval":"-1s"}`:                   `interval: interval is -1s, want a duration that is not negative`,
		`{"interval":"0s"}`:                    `interval: interval is 0s, want a duration of 1ms and more, such as 10s`,
		`{"interval":"0.000000001s"}`:          `interval: interval is 1ns, want a duration of 1ms and more, such as 10s`,
		`{"base_ejection_time":"-0.5s"}`:       `base_ejection_time: base_ejection_time is -500ms, want a duration that is not negative`,
		`{"max_ejection_time":"-1s"}`:          `max_ejection_time: max_ejection_time is -1s, want a duration that is not negative`,
		`{"max_ejection_percent":101}`:         `max_ejection_percent: max_ejection_percent is 101, want 0 to 100`,
		`{"enforcing_success_rate":101}`:       `enforcing_success_rate: enforcing_success_rate is 101, want 0 to 100`,
		`{"failure_percentage_threshold":200}`: `failure_percentage_threshold: failure_percentage_threshold is 200, want 0 to 100`,
		`{"enforcing_failure_percentage":4294967295,"max_ejection_percent":101}`: `max_ejection_percent: max_ejection_percent is 101, want 0 to 100; enforcing_failure_percentage: enforcing_failure_percentage is 4294967295, want 0 to 100`,
	} {
		_, _, err := ReadOutlierDetection(outliers(t, text))
		if _, ok := errors.AsType[*Invalid](err); !ok || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	// A duration with too many nanoseconds cannot be written in JSON.
	broken := outliers(t, `{"interval":"1s"}`)
	broken.Interval.Nanos = 2_000_000_000
	if _, _, err := ReadOutlierDetection(broken); err == nil || !strings.HasPrefix(err.Error(), "interval: interval: ") {
		t.Errorf("an invalid duration: error %v", err)
	}
	// An interval of 0s is valid if no algorithm is enabled.
	if _, _, err := ReadOutlierDetection(outliers(t, `{"interval":"0s","enforcing_success_rate":0}`)); err != nil {
		t.Error(err)
	}
}

func TestOutlierDetectionNotes(t *testing.T) {
	_, notes, err := ReadOutlierDetection(outliers(t, `{"consecutive_5xx":3,"failure_percentage_threshold":50,"failure_percentage_request_volume":1,"success_rate_minimum_hosts":1,"enforcing_success_rate":0}`))
	if err != nil {
		t.Fatal(err)
	}
	want := "success_rate_minimum_hosts: success_rate_minimum_hosts has no effect without enforcing_success_rate; failure_percentage_threshold: failure_percentage_threshold has no effect without enforcing_failure_percentage; " +
		"failure_percentage_request_volume: failure_percentage_request_volume has no effect without enforcing_failure_percentage; " +
		"consecutive_5xx: consecutive_5xx has no effect"
	if got := (&Invalid{Problems: notes}).Error(); got != want {
		t.Errorf("notes %s, want %s", got, want)
	}
	_, notes, err = ReadOutlierDetection(outliers(t, `{"interval":"5s","enforcing_failure_percentage":100,"failure_percentage_threshold":50,"success_rate_minimum_hosts":1}`))
	if err != nil || len(notes) > 0 {
		t.Errorf("notes %v, %v; want none", notes, err)
	}
}

// "The configuration for that outlier_detection policy will be based on the outlier_detection
// field in the corresponding DiscoveryMechanism config for that priority."
func TestOutlierDetectionOfEachMechanism(t *testing.T) {
	read := func(text string) *lbconfig.OutlierDetection {
		o, _, err := ReadOutlierDetection(outliers(t, text))
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	first := topology.Plain("a", "", nil).With(false, read(`{"interval":"1s"}`))
	second := new(topology.Policies).Combine(topology.Plain("b", "", nil), topology.Plain("c", "", nil)).With(false, read(`{"interval":"2s"}`))
	third := topology.Plain("d", "", nil).With(false, nil)
	policies, err := topology.NewPolicies(topology.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	config := policies.Combine(first, second, third).Config()
	for n, want := range []string{`{"interval":"1s"`, `{"interval":"2s"`, `{"interval":"2s"`, noOp} {
		if got := policyOf(t, config, n); !strings.HasPrefix(got, want) {
			t.Errorf("priority %d has %s, want %s", n, got, want)
		}
	}
}
