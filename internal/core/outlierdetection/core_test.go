package outlierdetection_test

import (
	"math"
	"testing"
	"time"

	core "github.com/understudy-lb/understudy/internal/core/outlierdetection"
	"github.com/understudy-lb/understudy/internal/testing/outlierscenario"
)

func drawZero() uint32 { return 0 }

// The policy may call Failed for an endpoint that was just removed. This must not eject anything.
func TestFailureOfRemovedEndpoint(t *testing.T) {
	c := core.New[string](drawZero)
	config := outlierscenario.Default()
	config.ConsecutiveFailuresEjection = &core.ConsecutiveFailuresEjection{Failures: 5, EnforcementPercentage: 100}
	removed, kept := &core.Endpoint[string]{}, &core.Endpoint[string]{}
	c.Update(config, []*core.Endpoint[string]{removed, kept}, time.Unix(0, 0))
	c.Update(config, []*core.Endpoint[string]{kept}, time.Unix(1, 0))
	if c.Failed(removed, time.Unix(2, 0)); removed.Ejected() {
		t.Error("an endpoint that was removed is ejected")
	}
	if c.Failed(kept, time.Unix(2, 0)); !kept.Ejected() {
		t.Error("the remaining endpoint is not ejected")
	}
	if c.Update(config, nil, time.Unix(3, 0)); kept.Ejected() || len(c.Take().States) != 2 {
		t.Error("its removal does not end its ejection")
	}
}

// If baseEjectionTime multiplied by the multiplier overflows, the ejection lasts for the maximum
// time.
func TestLongEjectionTimes(t *testing.T) {
	c := core.New[string](drawZero)
	config := outlierscenario.Default()
	config.BaseEjectionTime = time.Second
	config.FailurePercentageEjection = &core.FailurePercentageEjection{Threshold: 50, EnforcementPercentage: 100}
	e := &core.Endpoint[string]{}
	list := []*core.Endpoint[string]{e}
	sweep := func(elapsed time.Duration, failures uint64, ejected bool) {
		t.Helper()
		e.Failures = failures
		if c.Sweep(time.Unix(0, 0).Add(elapsed)); e.Ejected() != ejected {
			t.Fatalf("at %v: ejected is %v, want %v", elapsed, e.Ejected(), ejected)
		}
	}
	c.Update(config, list, time.Unix(0, 0))
	sweep(10*time.Second, 1, true)
	sweep(20*time.Second, 0, false)
	config.BaseEjectionTime = math.MaxInt64
	c.Update(config, list, time.Unix(20, 0))
	sweep(30*time.Second, 1, true)
	sweep(time.Hour, 0, true)
	config.BaseEjectionTime, config.MaxEjectionTime = math.MaxInt64/3+1, math.MaxInt64
	c.Update(config, list, time.Unix(3600, 0))
	if got := c.EjectedUntil(e).Sub(time.Unix(30, 0)); got != 2*config.BaseEjectionTime {
		t.Errorf("the second ejection lasts for %v, want %v", got, 2*config.BaseEjectionTime)
	}
}

// An ejected endpoint and another one connect. When the child policy reports TRANSIENT_FAILURE, none
// is sound, and the ejection is hidden. It is shown again when the other one is connected.
func TestNoneConnects(t *testing.T) {
	c := core.New[string](drawZero)
	config := outlierscenario.Default()
	config.BelowOverflow = true
	config.ConsecutiveFailuresEjection = &core.ConsecutiveFailuresEjection{Failures: 5, EnforcementPercentage: 100}
	ejected, other := &core.Endpoint[string]{}, &core.Endpoint[string]{}
	c.Update(config, []*core.Endpoint[string]{ejected, other}, time.Unix(0, 0))
	c.Failed(ejected, time.Unix(1, 0))
	for _, step := range []struct {
		event   string
		do      func()
		visible bool
	}{
		{"the ejection", func() {}, true},
		{"TRANSIENT_FAILURE", c.AllConnectsFailed, false},
		{"another one", c.AllConnectsFailed, false},
		{"another attempt", func() { c.Connection(other, core.Connecting) }, false},
		{"a connection", func() { c.Connection(other, core.Connected) }, true},
		{"TRANSIENT_FAILURE while it is connected", c.AllConnectsFailed, true},
		{"the end of the connection", func() { c.Connection(other, core.Connecting) }, true},
	} {
		if step.do(); ejected.VisiblyEjected() != step.visible || c.HidesEjections() == step.visible {
			t.Errorf("after %s: visible is %v, want %v", step.event, ejected.VisiblyEjected(), step.visible)
		}
	}
}
