package pickfirst

import (
	"errors"
	"testing"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
)

func TestLateReportsAreIgnored(t *testing.T) {
	cc, p := build(t)
	update(t, p, endpoints("a", "b"))
	cc.SubConn("a").Report(connectivity.TransientFailure, errors.New("refused"))
	old := cc.SubConn("a")
	cc.SubConn("b").Report(connectivity.Ready, nil)
	cc.SubConn("b").Report(connectivity.Idle, nil)
	p.ExitIdle()
	n := len(cc.States())
	old.Report(connectivity.Shutdown, nil)
	old.Report(connectivity.Ready, nil)
	if cc.SubConn("a") == old || len(cc.States()) != n {
		t.Errorf("a report of a subchannel that was shut down had an effect: %v", cc.State().ConnectivityState)
	}
}

type donePicker struct{ done int }

func (d *donePicker) Pick(balancer.PickInfo) (balancer.PickResult, error) {
	return balancer.PickResult{Done: func(balancer.DoneInfo) { d.done++ }}, nil
}

// Outlier detection and the policy both count calls.
func TestCallIsCountedTwice(t *testing.T) {
	d, c := &donePicker{}, newCalls(&subchannel{policy: &policy{}, index: removedIndex})
	result, _ := (&countedPicker{d, c}).Pick(balancer.PickInfo{})
	result.Done(balancer.DoneInfo{})
	if open := c.open.Load(); open != 1 || d.done != 1 {
		t.Errorf("after the call, %d open and %d done, want 1 and 1", open, d.done)
	}
}
