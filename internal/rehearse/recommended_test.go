package rehearse

import (
	"reflect"
	"testing"
	"time"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy"
	"github.com/understudy-lb/understudy/internal/channel/topology"
	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	"github.com/understudy-lb/understudy/internal/config/options"
	"github.com/understudy-lb/understudy/internal/core/outlierdetection"
)

// Recommended is what a channel with the options of that name configures.
func TestRecommended(t *testing.T) {
	o := understudy.Recommended()
	policies, err := topology.NewPolicies(topology.Settings{FailoverTimeout: o.FailoverTimeout, WarmStandby: o.WarmStandby, Overflow: o.Overflow, Ramp: o.Ramp, OutlierDetection: options.On})
	if err != nil {
		t.Fatal(err)
	}
	config := policies.Join(topology.Plain("p", "", []resolver.Endpoint{{Addresses: []resolver.Address{{Addr: "a:1"}}}})).Config()
	ejection := config.Children["p"].Config.Config.(*lbconfig.OutlierDetection)
	want := Policy{
		FailoverTimeout: time.Duration(config.FailoverTimeout), ChildRetention: time.Duration(config.ChildRetention), WarmStandby: int(config.WarmStandby),
		Overflow: config.Overflow, Ramp: o.Ramp, MaxConnectBackoff: o.MaxConnectBackoff, Failures: int(ejection.ConsecutiveFailuresEjection.Failures),
		Ejection: outlierdetection.Config{
			Interval: time.Duration(ejection.Interval), BaseEjectionTime: time.Duration(ejection.BaseEjectionTime), MaxEjectionTime: time.Duration(ejection.MaxEjectionTime),
			MaxEjectionPercent:          ejection.MaxEjectionPercent,
			SuccessRateEjection:         (*outlierdetection.SuccessRateEjection)(ejection.SuccessRateEjection),
			FailurePercentageEjection:   (*outlierdetection.FailurePercentageEjection)(ejection.FailurePercentageEjection),
			ConsecutiveFailuresEjection: (*outlierdetection.ConsecutiveFailuresEjection)(ejection.ConsecutiveFailuresEjection),
		},
	}
	if got := Recommended(); !reflect.DeepEqual(got, want) {
		t.Errorf("the model plays %+v, a channel has %+v", got, want)
	}
	if got := o.Keepalive.Time + o.Keepalive.Timeout; got != keepalive {
		t.Errorf("the model notices a lost connection after %v, a channel after %v", keepalive, got)
	}
}
