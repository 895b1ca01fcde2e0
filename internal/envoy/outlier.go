package envoy

import (
	"cmp"
	"math"
	"slices"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/understudy-lb/understudy/internal/lbconfig"
	"github.com/understudy-lb/understudy/internal/topology"
)

// ReadOutlierDetection converts a cluster's outlier_detection by the mapping of gRFC A50 ("xDS
// Integration"). In addition, the configuration sets ReportEmptied: when all endpoints of a
// priority are ejected, understudy_priority can use another one. The notes describe ignored fields.
// The error is an *Invalid (gRFC A50, "xDS Validation").
func ReadOutlierDetection(given *clusterv3.OutlierDetection) (*topology.OutlierDetection, []Problem, error) {
	r := outlierReader{config: lbconfig.NewOutlierDetection()}
	r.duration("interval", given.GetInterval(), &r.config.Interval)
	r.duration("base_ejection_time", given.GetBaseEjectionTime(), &r.config.BaseEjectionTime)
	r.duration("max_ejection_time", given.GetMaxEjectionTime(), &r.config.MaxEjectionTime)
	r.number("max_ejection_percent", given.GetMaxEjectionPercent(), &r.config.MaxEjectionPercent, 100)
	r.successRate(given)
	r.failurePercentage(given)
	if given := time.Duration(r.config.Interval); r.config.Ejects() && given < lbconfig.LeastInterval {
		r.found.Add("interval", "interval is %v, want a duration of 1ms and more, such as 10s", given)
	}
	if err := r.found.Err(); err != nil {
		return nil, nil, err
	}
	r.config.ReportEmptied = r.config.Ejects()
	return topology.NewOutlierDetection(r.config), noteOutlierDetection(given, r.config), nil
}

type outlierReader struct {
	config *lbconfig.OutlierDetection
	found  Invalid
}

// successRate reads the success rate algorithm: "If the enforcing_success_rate field is set to 0,
// the config success_rate_ejection field will be null". Its fields are still validated.
func (r *outlierReader) successRate(given *clusterv3.OutlierDetection) {
	s := lbconfig.NewSuccessRateEjection()
	r.number("enforcing_success_rate", given.GetEnforcingSuccessRate(), &s.EnforcementPercentage, 100)
	r.number("success_rate_stdev_factor", given.GetSuccessRateStdevFactor(), &s.StdevFactor, math.MaxUint32)
	r.number("success_rate_minimum_hosts", given.GetSuccessRateMinimumHosts(), &s.MinimumHosts, math.MaxUint32)
	r.number("success_rate_request_volume", given.GetSuccessRateRequestVolume(), &s.RequestVolume, math.MaxUint32)
	if s.EnforcementPercentage > 0 {
		r.config.SuccessRateEjection = s
	}
}

// failurePercentage reads the failure percentage algorithm: "If the enforcing_failure_percent field
// is set to 0 or null, the config failure_percent_ejection field will be null".
func (r *outlierReader) failurePercentage(given *clusterv3.OutlierDetection) {
	f := lbconfig.NewFailurePercentageEjection()
	f.EnforcementPercentage = 0
	r.number("failure_percentage_threshold", given.GetFailurePercentageThreshold(), &f.Threshold, 100)
	r.number("enforcing_failure_percentage", given.GetEnforcingFailurePercentage(), &f.EnforcementPercentage, 100)
	r.number("failure_percentage_minimum_hosts", given.GetFailurePercentageMinimumHosts(), &f.MinimumHosts, math.MaxUint32)
	r.number("failure_percentage_request_volume", given.GetFailurePercentageRequestVolume(), &f.RequestVolume, math.MaxUint32)
	if f.EnforcementPercentage > 0 {
		r.config.FailurePercentageEjection = f
	}
}

// duration reads a duration, which must be valid and not negative. A duration beyond the range of
// time.Duration (about 292 years) becomes the largest one.
func (r *outlierReader) duration(field string, given *durationpb.Duration, into *lbconfig.Duration) {
	if given == nil {
		return
	}
	if err := given.CheckValid(); err != nil {
		r.found.Add(field, "%s: %v", field, err)
		return
	}
	d := given.AsDuration()
	if d < 0 {
		r.found.Add(field, "%s is %v, want a duration that is not negative", field, d)
		return
	}
	*into = lbconfig.Duration(d)
}

func (r *outlierReader) number(field string, given *wrapperspb.UInt32Value, into *uint32, most uint32) {
	if given == nil {
		return
	}
	if given.GetValue() > most {
		r.found.Add(field, "%s is %d, want 0 to %d", field, given.GetValue(), most)
		return
	}
	*into = given.GetValue()
}

// outlierFields holds the fields that gRFC A50 supports. The value of a field that belongs to an
// optional algorithm is the field that enables the algorithm.
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
		needs, known := outlierFields[name]
		switch {
		case !known:
			notes.Add(string(name), "%s has no effect", name)
		case needs == "enforcing_failure_percentage" && config.FailurePercentageEjection == nil,
			needs == "enforcing_success_rate" && config.SuccessRateEjection == nil:
			notes.Add(string(name), "%s has no effect without %s", name, needs)
		}
		return true
	})
	slices.SortFunc(notes.Problems, func(a, b Problem) int { return cmp.Compare(a.Path, b.Path) })
	return notes.Problems
}
