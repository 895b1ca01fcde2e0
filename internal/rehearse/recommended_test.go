package rehearse

import (
	"reflect"
	"testing"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy"
	"github.com/understudy-lb/understudy/internal/channel/topology"
	"github.com/understudy-lb/understudy/internal/config/options"
)

// Recommended is what a channel with the options of that name configures.
func TestRecommended(t *testing.T) {
	o := understudy.Recommended()
	policies, err := topology.NewPolicies(topology.Settings{FailoverTimeout: o.FailoverTimeout, WarmStandby: o.WarmStandby, Overflow: o.Overflow, Ramp: o.Ramp, OutlierDetection: options.On})
	if err != nil {
		t.Fatal(err)
	}
	tree := policies.Combine(topology.Plain("p", "", []resolver.Endpoint{{Addresses: []resolver.Address{{Addr: "a:1"}}}}))
	want := OfUpdate(tree).Policy
	want.SourcePriorities = nil
	if got := Recommended(); !reflect.DeepEqual(got, want) {
		t.Errorf("the model plays %+v, a channel has %+v", got, want)
	}
	if got := o.Keepalive.Time + o.Keepalive.Timeout; got != keepalive {
		t.Errorf("the model notices a lost connection after %v, a channel after %v", keepalive, got)
	}
}
