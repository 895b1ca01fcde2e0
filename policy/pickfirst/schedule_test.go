package pickfirst

import (
	"errors"
	"fmt"
	"strings"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"pgregory.net/rapid"

	core "github.com/understudy-lb/understudy/internal/core/pickfirst"
)

// step is one event of a random schedule. Its effect depends on the state of the subchannel, so
// each schedule is possible with any policy.
type step struct {
	op      string
	list    []string
	health  bool
	address string
	outcome core.State
	wait    time.Duration
}

func (s step) String() string {
	switch s.op {
	case "update":
		return fmt.Sprintf("update %s health=%t", strings.Join(s.list, " "), s.health)
	case "network", "health":
		return fmt.Sprintf("%s %s %v", s.op, s.address, s.outcome)
	case "advance":
		return fmt.Sprintf("advance %v", s.wait)
	}
	return s.op
}

var addressNames = []string{"a", "b", "c", "d"}

func drawStep(t *rapid.T) step {
	address := rapid.SampledFrom(addressNames)
	outcome := rapid.SampledFrom([]core.State{core.TransientFailure, core.TransientFailure, core.TransientFailure, core.TransientFailure, core.Ready, core.Idle})
	switch op := rapid.SampledFrom([]string{"network", "network", "network", "network", "network", "network",
		"update", "advance", "exit-idle", "pick", "health", "resolver-error"}).Draw(t, "op"); op {
	case "update":
		return step{op: op, health: rapid.Bool().Draw(t, "health"), list: rapid.SliceOfN(address, 0, 5).Draw(t, "list")}
	case "network":
		return step{op: op, address: address.Draw(t, "address"), outcome: outcome.Draw(t, "outcome")}
	case "health":
		now := rapid.SampledFrom([]core.State{core.Connecting, core.Ready, core.TransientFailure}).Draw(t, "now")
		return step{op: op, address: address.Draw(t, "address"), outcome: now}
	case "advance":
		return step{op: op, wait: rapid.SampledFrom([]time.Duration{100, 150, 250, 1000}).Draw(t, "ms") * time.Millisecond}
	default:
		return step{op: op}
	}
}

func drawSchedule(t *rapid.T) []step {
	first := step{op: "update", list: addressNames[:rapid.IntRange(1, 4).Draw(t, "n")]}
	length := rapid.IntRange(1, 100).Draw(t, "length")
	return append([]step{first}, rapid.SliceOfN(rapid.Custom(drawStep), length, length).Draw(t, "schedule")...)
}

// run executes a step and returns the actions of the policy. For "advance", the caller must wait,
// because all recorders in a bubble share one clock.
func (r *recorder) run(s step) []string {
	switch s.op {
	case "update":
		r.Update(s.list, s.health)
	case "network":
		r.changeState(s.address, s.outcome)
	case "health":
		r.Health(s.address, s.outcome, errors.New("unwell"))
	case "exit-idle":
		r.ExitIdle()
	case "pick":
		if state := r.State(); state.ConnectivityState == connectivity.Idle && state.Picker != nil {
			state.Picker.Pick(balancer.PickInfo{})
		}
	case "resolver-error":
		r.ResolverError(errors.New("nxdomain"))
	}
	return r.Take()
}

func (r *recorder) changeState(address string, outcome core.State) {
	synctest.Wait()
	sub := r.sub(address)
	if sub == nil {
		return
	}
	switch sub.state {
	case core.None, core.Idle:
		if sub.connectCalled {
			r.Report(address, core.Connecting, nil)
		}
	case core.Connecting:
		var err error
		if outcome == core.TransientFailure {
			err = fmt.Errorf("%s refused", address)
		}
		r.Report(address, outcome, err)
	default:
		r.Report(address, core.Idle, nil)
	}
}
