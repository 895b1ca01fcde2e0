package weightedroundrobin

import (
	"testing"
	"time"
)

// An endpoint that connects again counts as failed until it is READY.
func TestFailedShareOfReports(t *testing.T) {
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
		{0, Ready, 0},
		{1, TransientFailure, 0.375},
		{1, Connecting, 0.375},
		{2, Ready, 0.375},
		{1, Ready, 0},
		{2, Idle, 0},
		{2, Connecting, 0},
		{2, TransientFailure, 0.5},
		{2, Idle, 0.5},
		{2, Ready, 0},
		{2, Connecting, 0},
	} {
		core.Reported(children[step.child], step.state, time.Time{})
		core.Publish(time.Time{})
		if failed := core.FailedShare(); failed != step.want {
			t.Errorf("after %d reported %v: %v has failed, want %v", step.child, step.state, failed, step.want)
		}
	}
}

// The first failure of an endpoint changes the failed share, so it must be published. Further
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
