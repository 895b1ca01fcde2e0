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

const (
	enforcingSuccessRate       = "enforcing_success_rate"
	enforcingFailurePercentage = "enforcing_failure_percentage"
)

// ReadOutlierDetection converts a cluster's outlier_detection as specified in gRFC A50 ("xDS
// Integration"). The notes describe ignored fields. The error is an *Invalid (gRFC A50, "xDS
// Validation").
//
// "If the enforcing_success_rate field is set to 0, the config success_rate_ejection field will be
// null". "If the enforcing_failure_percent field is set to 0 or null, the config
// failure_percent_ejection field will be null". The fields are validated even then.
func ReadOutlierDetection(given *clusterv3.OutlierDetection) (*topology.OutlierDetection, []Problem, error) {
	config, s, f := lbconfig.New[lbconfig.OutlierDetection](), lbconfig.New[lbconfig.SuccessRateEjection](), lbconfig.New[lbconfig.FailurePercentageEjection]()
	f.EnforcementPercentage = 0
	r := outlierReader{enabledBy: make(map[protoreflect.Name]protoreflect.Name)}
	r.duration("interval", given.GetInterval(), &config.Interval)
	r.duration("base_ejection_time", given.GetBaseEjectionTime(), &config.BaseEjectionTime)
	r.duration("max_ejection_time", given.GetMaxEjectionTime(), &config.MaxEjectionTime)
	const noLimit = math.MaxUint32
	r.number("max_ejection_percent", "", given.GetMaxEjectionPercent(), &config.MaxEjectionPercent, 100)
	r.number(enforcingSuccessRate, "", given.GetEnforcingSuccessRate(), &s.EnforcementPercentage, 100)
	r.number("success_rate_stdev_factor", enforcingSuccessRate, given.GetSuccessRateStdevFactor(), &s.StdevFactor, noLimit)
	r.number("success_rate_minimum_hosts", enforcingSuccessRate, given.GetSuccessRateMinimumHosts(), &s.MinimumHosts, noLimit)
	r.number("success_rate_request_volume", enforcingSuccessRate, given.GetSuccessRateRequestVolume(), &s.RequestVolume, noLimit)
	r.number("failure_percentage_threshold", enforcingFailurePercentage, given.GetFailurePercentageThreshold(), &f.Threshold, 100)
	r.number(enforcingFailurePercentage, "", given.GetEnforcingFailurePercentage(), &f.EnforcementPercentage, 100)
	r.number("failure_percentage_minimum_hosts", enforcingFailurePercentage, given.GetFailurePercentageMinimumHosts(), &f.MinimumHosts, noLimit)
	r.number("failure_percentage_request_volume", enforcingFailurePercentage, given.GetFailurePercentageRequestVolume(), &f.RequestVolume, noLimit)
	if s.EnforcementPercentage > 0 {
		config.SuccessRateEjection = s
	}
	if f.EnforcementPercentage > 0 {
		config.FailurePercentageEjection = f
	}
	if given := time.Duration(config.Interval); config.Ejects() && given < lbconfig.MinInterval {
		r.problems.Add("interval", "interval is %v, want a duration of 1ms and more, such as 10s", given)
	}
	if err := r.problems.Err(); err != nil {
		return nil, nil, err
	}
	return topology.NewOutlierDetection(config), r.notes(given, config), nil
}

type outlierReader struct {
	problems Invalid
	// enabledBy has an entry for each field that gRFC A50 supports. If the field belongs to an
	// optional algorithm, the value is the field that enables this algorithm.
	enabledBy map[protoreflect.Name]protoreflect.Name
}

// duration reads a duration, which must be valid and not negative. A duration that exceeds the
// range of time.Duration (about 292 years) becomes the maximum time.Duration.
func (r *outlierReader) duration(field protoreflect.Name, given *durationpb.Duration, result *lbconfig.Duration) {
	r.enabledBy[field] = ""
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

func (r *outlierReader) number(field, enabledBy protoreflect.Name, given *wrapperspb.UInt32Value, result *uint32, limit uint32) {
	r.enabledBy[field] = enabledBy
	switch {
	case given == nil:
	case given.GetValue() > limit:
		r.problems.Add(string(field), "%s is %d, want 0 to %d", field, given.GetValue(), limit)
	default:
		*result = given.GetValue()
	}
}

// notes returns notes about ignored fields: "All other fields will be ignored".
func (r *outlierReader) notes(given *clusterv3.OutlierDetection, config *lbconfig.OutlierDetection) []Problem {
	var notes Invalid
	given.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		name := field.Name()
		enabledBy, known := r.enabledBy[name]
		switch {
		case !known:
			notes.Add(string(name), "%s has no effect", name)
		case enabledBy == enforcingFailurePercentage && config.FailurePercentageEjection == nil,
			enabledBy == enforcingSuccessRate && config.SuccessRateEjection == nil:
			notes.Add(string(name), "%s has no effect without %s", name, enabledBy)
		}
		return true
	})
	slices.SortFunc(notes.Problems, func(a, b Problem) int { return cmp.Compare(a.Path, b.Path) })
	return notes.Problems
}
