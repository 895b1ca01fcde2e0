package weightedroundrobin

import (
	"math"
	"testing"
	"time"
)

// Envoy's documentation: new weight = weight × max(min weight percent, time
// factor^(1/aggression)), where time factor = max(seconds since start, 1) / window in seconds.
func TestSlowStartFactor(t *testing.T) {
	tests := []struct {
		window              time.Duration
		aggression, percent float64
		ready               time.Duration
		want                float64
	}{
		{60 * time.Second, 1, 10, 0, 0.1},
		{60 * time.Second, 1, 0, 0, 1.0 / 60},
		{60 * time.Second, 1, 0, 500 * time.Millisecond, 1.0 / 60},
		{60 * time.Second, 1, 10, 30 * time.Second, 0.5},
		{60 * time.Second, 2, 10, 15 * time.Second, 0.5},
		{60 * time.Second, 0.5, 10, 30 * time.Second, 0.25},
		{60 * time.Second, 0.5, 30, 30 * time.Second, 0.3},
		{60 * time.Second, 1, 10, 59 * time.Second, 59.0 / 60},
		{60 * time.Second, 0.5, 10, 60 * time.Second, 1},
		{60 * time.Second, 1, 100, 0, 1},
		{1, 1, 10, 0, 1},
		{time.Second / 2, 1, 10, 0, 1}, // the minimum of one second is longer than the window
	}
	for _, test := range tests {
		s := SlowStart{Window: test.window, Aggression: test.aggression, MinWeightPercent: test.percent}
		if got := s.Factor(test.ready); math.Abs(got-test.want) > 1e-12 {
			t.Errorf("%+v: factor = %v, want %v", test, got, test.want)
		}
		if s.Step() <= 0 {
			t.Errorf("%+v: step %v, want a positive duration", test, s.Step())
		}
	}
}
