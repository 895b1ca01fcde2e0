package messages

import (
	"math"
	"strings"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/understudy-lb/understudy/internal/config/lbconfig"
)

// ReadOutlierDetection converts a cluster's outlier_detection as specified in gRFC A50 ("xDS
// Integration"). The notes describe ignored fields. If it's invalid, the error is an *Invalid (gRFC
// A50, "xDS Validation").
//
// In the words of gRFC A50: "If the enforcing_success_rate field is set to 0, the config
// success_rate_ejection field will be null". "If the enforcing_failure_percent field is set to 0 or
// null, the config failure_percent_ejection field will be null". We validate all fields either way.
func ReadOutlierDetection(given *clusterv3.OutlierDetection) (*lbconfig.OutlierDetection, []Problem, error) {
	config, s, f := lbconfig.New[lbconfig.OutlierDetection](), lbconfig.New[lbconfig.SuccessRateEjection](), lbconfig.New[lbconfig.FailurePercentageEjection]()
	f.EnforcementPercentage = 0
	var r outlierReader
	r.duration("interval", given.GetInterval(), &config.Interval)
	r.duration("base_ejection_time", given.GetBaseEjectionTime(), &config.BaseEjectionTime)
	r.duration("max_ejection_time", given.GetMaxEjectionTime(), &config.MaxEjectionTime)
	const noLimit = math.MaxUint32
	r.number("max_ejection_percent", given.GetMaxEjectionPercent(), &config.MaxEjectionPercent, 100)
	r.number("enforcing_success_rate", given.GetEnforcingSuccessRate(), &s.EnforcementPercentage, 100)
	r.number("success_rate_stdev_factor", given.GetSuccessRateStdevFactor(), &s.StdevFactor, noLimit)
	r.number("success_rate_minimum_hosts", given.GetSuccessRateMinimumHosts(), &s.MinimumHosts, noLimit)
	r.number("success_rate_request_volume", given.GetSuccessRateRequestVolume(), &s.RequestVolume, noLimit)
	r.number("failure_percentage_threshold", given.GetFailurePercentageThreshold(), &f.Threshold, 100)
	r.number("enforcing_failure_percentage", given.GetEnforcingFailurePercentage(), &f.EnforcementPercentage, 100)
	r.number("failure_percentage_minimum_hosts", given.GetFailurePercentageMinimumHosts(), &f.MinimumHosts, noLimit)
	r.number("failure_percentage_request_volume", given.GetFailurePercentageRequestVolume(), &f.RequestVolume, noLimit)
	if s.EnforcementPercentage > 0 {
		config.SuccessRateEjection = s
	} else {
		r.noteWithout(given, "success_rate_", "enforcing_success_rate")
	}
	if f.EnforcementPercentage > 0 {
		config.FailurePercentageEjection = f
	} else {
		r.noteWithout(given, "failure_percentage_", "enforcing_failure_percentage")
	}
	if given := time.Duration(config.Interval); config.Ejects() && given < lbconfig.MinInterval {
		r.problems.Add("interval", "interval is %v, want a duration of 1ms and more, such as 10s", given)
	}
	if err := r.problems.Err(); err != nil {
		return nil, nil, err
	}
	r.notes.AddUnused("", given, r.supported...) // "All other fields will be ignored"
	return config, r.notes.Problems, nil
}

type outlierReader struct {
	problems, notes Invalid
	supported       []protoreflect.Name // according to gRFC A50
}

// duration caps durations at the longest time.Duration (about 292 years).
func (r *outlierReader) duration(field protoreflect.Name, given *durationpb.Duration, result *lbconfig.Duration) {
	r.supported = append(r.supported, field)
	switch d := given.AsDuration(); {
	case given == nil:
	case given.CheckValid() != nil:
		r.problems.Add(string(field), "%s: %v", field, given.CheckValid())
	case d < 0:
		r.problems.Add(string(field), "%s is %v, want a duration that is not negative", field, d)
	default:
		*result = lbconfig.Duration(d)
	}
}

func (r *outlierReader) number(field protoreflect.Name, given *wrapperspb.UInt32Value, result *uint32, limit uint32) {
	r.supported = append(r.supported, field)
	switch {
	case given == nil:
	case given.GetValue() > limit:
		r.problems.Add(string(field), "%s is %d, want 0 to %d", field, given.GetValue(), limit)
	default:
		*result = given.GetValue()
	}
}

func (r *outlierReader) noteWithout(given *clusterv3.OutlierDetection, prefix, enabledBy string) {
	given.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		if name := string(field.Name()); strings.HasPrefix(name, prefix) {
			r.notes.Add(name, "%s has no effect without %s", name, enabledBy)
		}
		return true
	})
}
