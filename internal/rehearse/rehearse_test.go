package rehearse

import (
	"fmt"
	"testing"
	"time"

	"github.com/understudy-lb/understudy/internal/core/outlierdetection"
)

var recommended = Policy{
	FailoverTimeout: 2 * time.Second, ChildRetention: 15 * time.Minute, WarmStandby: 1, Overflow: true, MaxConnectBackoff: 10 * time.Second, Failures: 5,
	Ejection: outlierdetection.Config{
		Interval: 10 * time.Second, BaseEjectionTime: 30 * time.Second, MaxEjectionTime: 300 * time.Second, MaxEjectionPercent: 100,
		FailurePercentageEjection:   &outlierdetection.FailurePercentageEjection{Threshold: 85, EnforcementPercentage: 100, MinimumHosts: 1, RequestVolume: 10},
		ConsecutiveFailuresEjection: &outlierdetection.ConsecutiveFailuresEjection{Failures: 5, EnforcementPercentage: 100},
	},
}

func two(rate float64) World {
	s := Server{Workers: 5, Service: 50 * time.Millisecond}
	return World{Priorities: [][]Server{{s, s}, {s, s}}, Clients: 100, Rate: rate, Deadlines: []time.Duration{time.Second}, Length: 3 * time.Minute, Policy: recommended}
}

func TestX(t *testing.T) {
	for _, rate := range []float64{100, 150, 180, 220, 300, 500} {
		began := time.Now()
		o := Play(two(rate), 1)
		fmt.Println(rate, o.Calls, o.Lost, o.Refused, o.Longest, o.Moves, o.Peak, time.Since(began))
	}
	for _, f := range []Fault{Killed, Drained, Hangs, Errors, Unavailable} {
		for p := range 2 {
			w := two(150)
			w.Events = []Event{{Fault: f, Factor: 1, Priority: p, Server: All, Span: Span{30 * time.Second, 90 * time.Second}}}
			began := time.Now()
			o := Play(w, 1)
			fmt.Printf("%d p%d calls %d lost %d refused %d longest %v normal %v moves %d peak %.2f attempts %.2f  %v\n", f, p, o.Calls, o.Lost, o.Refused, o.Longest, o.Normal, o.Moves, o.Peak, float64(o.Attempts)/float64(o.Calls), time.Since(began))
		}
	}
}
