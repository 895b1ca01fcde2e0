package pickfirst

import (
	"errors"
	"testing"

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
