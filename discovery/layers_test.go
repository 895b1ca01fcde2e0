package discovery_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/config/options"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

// An option in the target must switch off a contradictory option of the program, which must be
// logged once.
func TestTargetOverridesProgramOption(t *testing.T) {
	for _, test := range []struct {
		target    string
		opt       given.Option
		want, not string
		note      string
	}{
		{"x:///y?endpointPolicy=pick_first", given.Set("OutlierDetection", options.On), `understudy_pick_first`, outlierDetectionOn, "endpointPolicy in the target disables outlierDetection in the program, because they exclude each other"},
		{"x:///y?outlierDetection=true", given.Set("EndpointPolicy", "pick_first"), outlierDetectionOn, `understudy_pick_first`, "outlierDetection in the target disables endpointPolicy in the program"},
		{"x:///y?endpointPolicy=pick_first", given.Set("SlowStart", time.Minute), `understudy_pick_first`, "slowStart", "endpointPolicy in the target disables slowStart in the program"},
	} {
		s := &fakeSource{onStart: func(s *fakeSource) { s.sendAddresses("10.0.0.1:1") }}
		b, before := newSourceBuilder(s, test.opt), logged.Count(test.note)
		for range 2 {
			cc := &channel{}
			r, err := b.Build(target(test.target), cc, resolver.BuildOptions{})
			if err != nil {
				t.Fatalf("%s: %v", test.target, err)
			}
			if config := cc.config(); !strings.Contains(config, test.want) || strings.Contains(config, test.not) {
				t.Errorf("%s: config %s\nwant %s and no %s", test.target, config, test.want, test.not)
			}
			r.Close()
		}
		if n := logged.Count(test.note) - before; n != 1 {
			t.Errorf("%s: %q is logged %d times, want once", test.target, test.note, n)
		}
	}
}
