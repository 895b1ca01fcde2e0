// Package outlierscenario runs text scenarios of outlier_detection, both against the core alone and
// against the real policy over a fake child.
//
// A scenario starts with a line `new name`. These are its directives. The output lists state
// changes of endpoints as the child policy sees them, in order.
//
//	update a b …               the policy gets these endpoints, and a configuration from options
//	calls a ok=5 failed=3      calls begin and end: first five succeed, then three fail
//	begin a 3                  three calls begin
//	end a ok=1 failed=2        the three oldest calls end: one succeeds, then two fail
//	random 99 0 …              sets the next random numbers; all later ones are 0
//	disconnect a               the endpoint loses its connection and starts to connect; at first,
//	                           all endpoints are connected
//	refuse a                   the endpoint's connection attempt fails
//	connect a                  the endpoint's connection attempt succeeds
//	advance 10s                time passes
//
// The options of update are interval=10s, base=30s, max=300s and percent=10, which default to A50's
// values. Then there are success=(stdevFactor, enforcementPercentage, minimumHosts, requestVolume)
// and failure=(threshold, enforcementPercentage, minimumHosts, requestVolume) for the two
// algorithms of A50, consecutive=(failures, enforcementPercentage), and overflow, which stands in
// for a priority policy with overflow above.
package outlierscenario

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	core "github.com/understudy-lb/understudy/internal/core/outlierdetection"
)

type Target interface {
	Update(config core.Config, endpoints []string)
	Begin(endpoint string)
	// End ends the endpoint's oldest call. result is ok or failed.
	End(endpoint, result string)
	// Connect changes the connection of the endpoint. event is connect, disconnect or refuse.
	Connect(endpoint, event string)
	Advance(d time.Duration)
	// Take returns the lines logged since the last Take:
	//
	//	a TRANSIENT_FAILURE     the child policy sees endpoint a in this state
	//	a READY
	Take() []string
}

type Draw struct{ next []uint32 }

func (d *Draw) Next() uint32 {
	if len(d.next) == 0 {
		return 0
	}
	n := d.next[0]
	d.next = d.next[1:]
	return n
}

func Run(t *testing.T, path string, newTarget func(*Draw) Target) {
	t.Helper()
	var target Target
	var draw *Draw
	datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
		if d.Cmd == "new" {
			draw = &Draw{}
			target = newTarget(draw)
			return ""
		}
		run(t, d, target, draw)
		return strings.Join(append(target.Take(), ""), "\n")
	})
}

func run(t *testing.T, d *datadriven.TestData, target Target, draw *Draw) {
	switch d.Cmd {
	case "update":
		config, endpoints := parseUpdate(t, d)
		target.Update(config, endpoints)
	case "calls", "end":
		for _, arg := range d.CmdArgs[1:] {
			for range number(t, d, arg.Vals[0]) {
				if d.Cmd == "calls" {
					target.Begin(d.CmdArgs[0].Key)
				}
				target.End(d.CmdArgs[0].Key, arg.Key)
			}
		}
	case "begin":
		for range number(t, d, d.CmdArgs[1].Key) {
			target.Begin(d.CmdArgs[0].Key)
		}
	case "random":
		draw.next = nil
		for _, arg := range d.CmdArgs {
			draw.next = append(draw.next, number(t, d, arg.Key))
		}
	case "connect", "disconnect", "refuse":
		target.Connect(d.CmdArgs[0].Key, d.Cmd)
	case "advance":
		target.Advance(duration(t, d, d.CmdArgs[0].Key))
	default:
		d.Fatalf(t, "unknown directive %s", d.Cmd)
	}
}

func Default() core.Config {
	return core.Config{
		Interval:           10 * time.Second,
		BaseEjectionTime:   30 * time.Second,
		MaxEjectionTime:    300 * time.Second,
		MaxEjectionPercent: 10,
	}
}

func parseUpdate(t *testing.T, d *datadriven.TestData) (core.Config, []string) {
	config, endpoints := Default(), []string(nil)
	for _, arg := range d.CmdArgs {
		if len(arg.Vals) == 0 && arg.Key != "overflow" {
			endpoints = append(endpoints, arg.Key)
			continue
		}
		var n []uint32
		if arg.Key != "interval" && arg.Key != "base" && arg.Key != "max" {
			for _, v := range arg.Vals {
				n = append(n, number(t, d, v))
			}
		}
		switch arg.Key {
		case "interval":
			config.Interval = duration(t, d, arg.Vals[0])
		case "base":
			config.BaseEjectionTime = duration(t, d, arg.Vals[0])
		case "max":
			config.MaxEjectionTime = duration(t, d, arg.Vals[0])
		case "percent":
			config.MaxEjectionPercent = n[0]
		case "success":
			config.SuccessRateEjection = &core.SuccessRateEjection{StdevFactor: n[0], EnforcementPercentage: n[1], MinimumHosts: n[2], RequestVolume: n[3]}
		case "failure":
			config.FailurePercentageEjection = &core.FailurePercentageEjection{Threshold: n[0], EnforcementPercentage: n[1], MinimumHosts: n[2], RequestVolume: n[3]}
		case "consecutive":
			config.ConsecutiveFailuresEjection = &core.ConsecutiveFailuresEjection{Failures: n[0], EnforcementPercentage: n[1]}
		case "overflow":
			config.BelowOverflow = true
		default:
			d.Fatalf(t, "unknown option %s", arg.Key)
		}
	}
	return config, endpoints
}

func number(t *testing.T, d *datadriven.TestData, s string) uint32 {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	return uint32(n)
}

func duration(t *testing.T, d *datadriven.TestData, s string) time.Duration {
	v, err := time.ParseDuration(s)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	return v
}
