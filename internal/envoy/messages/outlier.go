package messages

import (
	"cmp"
	"math"
	"slices"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/understudy-lb/understudy/internal/channel/topology"
	"github.com/understudy-lb/understudy/internal/config/lbconfig"
)

// ReadOutlierDetection converts a cluster's outlier_detection as specified in gRFC A50 ("xDS
// Integration"). The notes describe ignored fields. The error is an *Invalid (gRFC A50, "xDS
// Validation").
func ReadOutlierDetection(given *clusterv3.OutlierDetection) (*topology.OutlierDetection, []Problem, error) {
	r := outlierReader{config: lbconfig.New[lbconfig.OutlierDetection]()}
	r.duration("interval", given.GetInterval(), &r.config.Interval)
	r.duration("base_ejection_time", given.GetBaseEjectionTime(), &r.config.BaseEjectionTime)
	r.duration("max_ejection_time", given.GetMaxEjectionTime(), &r.config.MaxEjectionTime)
	r.number("max_ejection_percent", given.GetMaxEjectionPercent(), &r.config.MaxEjectionPercent, 100)
	r.successRate(given)
	r.failurePercentage(given)
	if given := time.Duration(r.config.Interval); r.config.Ejects() && given < lbconfig.MinInterval {
		r.problems.Add("interval", "interval is %v, want a duration of 1ms and more, such as 10s", given)
	}
	if err := r.problems.Err(); err != nil {
		return nil, nil, err
	}
	return topology.NewOutlierDetection(r.config), noteOutlierDetection(given, r.config), nil
}

type outlierReader struct {
	config   *lbconfig.OutlierDetection
	problems Invalid
}

// successRate reads the fields of the success rate algorithm. "If the enforcing_success_rate field
// is set to 0, the config success_rate_ejection field will be null", but the fields are validated.
func (r *outlierReader) successRate(given *clusterv3.OutlierDetection) {
	s := lbconfig.New[lbconfig.SuccessRateEjection]()
	r.number("enforcing_success_rate", given.GetEnforcingSuccessRate(), &s.EnforcementPercentage, 100)
	r.number("success_rate_stdev_factor", given.GetSuccessRateStdevFactor(), &s.StdevFactor, math.MaxUint32)
	r.number("success_rate_minimum_hosts", given.GetSuccessRateMinimumHosts(), &s.MinimumHosts, math.MaxUint32)
	r.number("success_rate_request_volume", given.GetSuccessRateRequestVolume(), &s.RequestVolume, math.MaxUint32)
	if s.EnforcementPercentage > 0 {
		r.config.SuccessRateEjection = s
	}
}

// failurePercentage reads the fields of the failure percentage algorithm. "If the
// enforcing_failure_percent field is set to 0 or null, the config failure_percent_ejection field
// will be null".
func (r *outlierReader) failurePercentage(given *clusterv3.OutlierDetection) {
	f := lbconfig.New[lbconfig.FailurePercentageEjection]()
	f.EnforcementPercentage = 0
	r.number("failure_percentage_threshold", given.GetFailurePercentageThreshold(), &f.Threshold, 100)
	r.number("enforcing_failure_percentage", given.GetEnforcingFailurePercentage(), &f.EnforcementPercentage, 100)
	r.number("failure_percentage_minimum_hosts", given.GetFailurePercentageMinimumHosts(), &f.MinimumHosts, math.MaxUint32)
	r.number("failure_percentage_request_volume", given.GetFailurePercentageRequestVolume(), &f.RequestVolume, math.MaxUint32)
	if f.EnforcementPercentage > 0 {
		r.config.FailurePercentageEjection = f
	}
}

// duration reads a duration, which must be valid and not negative. A duration that exceeds the
// range of time.Duration (about 292 years) becomes the maximum time.Duration.
func (r *outlierReader) duration(field string, given *durationpb.Duration, result *lbconfig.Duration) {
	if given == nil {
		return
	}
	if err := given.CheckValid(); err != nil {
		r.problems.Add(field, "%s: %v", field, err)
		return
	}
	d := given.AsDuration()
	if d < 0 {
		r.problems.Add(field, "%s is %v, want a duration that is not negative", field, d)
		return
	}
	*result = lbconfig.Duration(d)
}

func (r *outlierReader) number(field string, given *wrapperspb.UInt32Value, result *uint32, limit uint32) {
	if given == nil {
		return
	}
	if given.GetValue() > limit {
		r.problems.Add(field, "%s is %d, want 0 to %d", field, given.GetValue(), limit)
		return
	}
	*result = given.GetValue()
}

// outlierFields has an entry for each field that gRFC A50 supports. If the field belongs to an
// optional algorithm, the value is the field that enables this algorithm.
var outlierFields = map[protoreflect.Name]protoreflect.Name{
	"interval": "", "base_ejection_time": "", "max_ejection_time": "", "max_ejection_percent": "",
	"enforcing_success_rate": "", "enforcing_failure_percentage": "",
	"success_rate_stdev_factor":         "enforcing_success_rate",
	"success_rate_minimum_hosts":        "enforcing_success_rate",
	"success_rate_request_volume":       "enforcing_success_rate",
	"failure_percentage_threshold":      "enforcing_failure_percentage",
	"failure_percentage_minimum_hosts":  "enforcing_failure_percentage",
	"failure_percentage_request_volume": "enforcing_failure_percentage",
}

// noteOutlierDetection returns notes about ignored fields: "All other fields will be ignored".
func noteOutlierDetection(given *clusterv3.OutlierDetection, config *lbconfig.OutlierDetection) []Problem {
	var notes Invalid
	given.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		name := field.Name()
		enabledBy, known := outlierFields[name]
		switch {
		case !known:
			notes.Add(string(name), "%s has no effect", name)
		case enabledBy == "enforcing_failure_percentage" && config.FailurePercentageEjection == nil,
			enabledBy == "enforcing_success_rate" && config.SuccessRateEjection == nil:
			notes.Add(string(name), "%s has no effect without %s", name, enabledBy)
		}
		return true
	})
	slices.SortFunc(notes.Problems, func(a, b Problem) int { return cmp.Compare(a.Path, b.Path) })
	return notes.Problems
}
