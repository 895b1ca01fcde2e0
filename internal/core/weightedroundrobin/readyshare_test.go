package weightedroundrobin

import (
	"testing"
	"time"
)

// The READY share must not depend on an endpoint that is CONNECTING, unless the endpoint has failed
// and has not been READY since.
func TestReadyShare(t *testing.T) {
	core := New[int]()
	core.Begin(Config{}, 3)
	var children []*Child[int]
	for i, weight := range []uint32{1, 3, 4} {
		child, _ := core.Endpoint(KeyOf([]Address{{Addr: string(rune('a' + i))}}), weight)
		children = append(children, child)
	}
	core.Endpoints()
	core.End()
	for _, step := range []struct {
		child int
		state State
		want  float64
	}{
		{0, Ready, 1},
		{1, TransientFailure, 0.25},
		{1, Connecting, 0.25},
		{2, Ready, 0.625},
		{1, Ready, 1},
		{2, Idle, 1},
		{2, Connecting, 1},
		{2, TransientFailure, 0.5},
		{2, Idle, 0.5},
		{2, Ready, 1},
		{2, Connecting, 1},
	} {
		core.Reported(children[step.child], step.state, time.Time{})
		core.Publish(time.Time{})
		if ready, unproven, _ := core.Shares(); ready != step.want || unproven != 0 {
			t.Errorf("after %d reported %v: %v is READY, %v unproven, want %v and 0", step.child, step.state, ready, unproven, step.want)
		}
	}
}

// The first failure of an endpoint changes the READY share, so it must be published. Further
// failures of the endpoint must not be published.
func TestFailureIsPublishedOnce(t *testing.T) {
	core := New[int]()
	core.Begin(Config{}, 2)
	a, _ := core.Endpoint(KeyOf([]Address{{Addr: "a"}}), 1)
	b, _ := core.Endpoint(KeyOf([]Address{{Addr: "b"}}), 1)
	core.Endpoints()
	core.End()
	core.Reported(a, Ready, time.Time{})
	core.Publish(time.Time{})
	for i, want := range []bool{true, false, false} {
		core.Reported(b, []State{TransientFailure, Connecting, TransientFailure}[i], time.Time{})
		if _, due := core.Due(); due != want {
			t.Errorf("report %d: due = %v, want %v", i, due, want)
		}
		core.Publish(time.Time{})
	}
}

// An endpoint that is unproven after an ejection counts as failed while it is not READY.
func TestUnprovenShare(t *testing.T) {
	core := New[int]()
	core.Begin(Config{}, 3)
	var children []*Child[int]
	for i, weight := range []uint32{1, 3, 4} {
		child, _ := core.Endpoint(KeyOf([]Address{{Addr: string(rune('a' + i))}}), weight)
		children = append(children, child)
		core.Reported(child, Ready, time.Time{})
	}
	core.Endpoints()
	core.End()
	core.Publish(time.Time{})
	checkShares := func(ready, unproven float64) {
		t.Helper()
		if _, due := core.Due(); !due {
			t.Error("the state is not due to be published")
		}
		core.Publish(time.Time{})
		if gotReady, gotUnproven, _ := core.Shares(); gotReady != ready || gotUnproven != unproven {
			t.Errorf("%v is READY, %v unproven, want %v and %v", gotReady, gotUnproven, ready, unproven)
		}
	}
	core.Unproven(children[1], true)
	checkShares(0.625, 0.375)
	core.Reported(children[2], TransientFailure, time.Time{})
	checkShares(0.125, 0.375)
	core.Reported(children[1], Connecting, time.Time{})
	checkShares(0.125, 0)
	core.Reported(children[1], Ready, time.Time{})
	checkShares(0.125, 0.375)
	core.Unproven(children[1], false)
	checkShares(0.5, 0)
	core.Unproven(children[1], false)
	if _, due := core.Due(); due {
		t.Error("an unchanged state is due to be published")
	}
}
