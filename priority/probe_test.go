package priority

import (
	"errors"
	"testing"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/base"
	"google.golang.org/grpc/connectivity"

	"github.com/understudy-lb/understudy/internal/shell"
)

// tallied is a picker that counts its picks.
type tallied struct{ picks int }

func (c *tallied) Pick(balancer.PickInfo) (balancer.PickResult, error) {
	c.picks++
	return balancer.PickResult{}, nil
}

func (c *tallied) Failure() error { return errors.New("no") }

func (c *tallied) Tier() shell.Tier { return shell.Tier{Condition: shell.Emptied} }

// A child that is half-open gets the first call, and then one in a hundred; so does each
// of several.
func TestAFewCallsAreProbes(t *testing.T) {
	inUse, first, second := &tallied{}, &tallied{}, &tallied{}
	p := &probing{inUse, &probes{pickers: []balancer.Picker{first, second}}}
	for i := range 1000 {
		if _, err := p.Pick(balancer.PickInfo{}); err != nil {
			t.Fatal(err)
		}
		if i == 1 && (first.picks != 1 || second.picks != 1) {
			t.Errorf("of the first two calls the probed ones had %d and %d", first.picks, second.picks)
		}
	}
	if first.picks != 10 || second.picks != 10 || inUse.picks != 980 {
		t.Errorf("the probed ones had %d and %d calls of 1000, the one in use %d", first.picks, second.picks, inUse.picks)
	}
	if shell.FailureOf(p) == nil || shell.TierOf(p).Condition != shell.Emptied {
		t.Error("what the picker in use says is lost")
	}
}

// No call suffers from a probe that has nothing to pick.
func TestAProbeThatCannotPick(t *testing.T) {
	inUse := &tallied{}
	p := &probing{inUse, &probes{pickers: []balancer.Picker{base.NewErrPicker(errors.New("no"))}}}
	for range 100 {
		if _, err := p.Pick(balancer.PickInfo{}); err != nil {
			t.Fatal(err)
		}
	}
	if inUse.picks != 100 {
		t.Errorf("%d of 100 calls went to the child in use", inUse.picks)
	}
}

// A child in use that often has a new picker does not make probes of more calls; a new
// picker of the child that is probed does.
func TestProbesGoOnFromPickerToPicker(t *testing.T) {
	p := &policy{}
	probed := &tallied{}
	calls := func(state balancer.State, n int) {
		for range n {
			_, _ = state.Picker.Pick(balancer.PickInfo{})
		}
	}
	for range 10 {
		calls(p.probing(readyWith(&tallied{}), probed), 10)
	}
	if probed.picks != 1 {
		t.Errorf("of 100 calls over ten pickers %d went to the probed child, want 1", probed.picks)
	}
	next := &tallied{}
	if calls(p.probing(readyWith(&tallied{}), next), 1); next.picks != 1 {
		t.Error("a new picker of the probed child did not get the first call")
	}
	if state := p.probing(readyWith(probed)); state.Picker != balancer.Picker(probed) || p.probes != nil {
		t.Error("without anything to probe, the picker is not the child's own")
	}
}

func readyWith(picker balancer.Picker) balancer.State {
	return balancer.State{ConnectivityState: connectivity.Ready, Picker: picker}
}
