package weightedroundrobin

import (
	"math"
	"strconv"
	"testing"
	"time"
)

// update runs an update of core with the endpoints 0, 1, 2 and so on, which have the given weights.
func update(core *Core[int], weights ...uint32) (children []*Child[int]) {
	core.Begin(core.config, len(weights))
	for i, weight := range weights {
		child, _ := core.Endpoint(KeyOf([]Address{{Addr: strconv.Itoa(i)}}), weight)
		children = append(children, child)
	}
	core.Endpoints()
	core.End()
	return children
}

// docs/a34.md: "With more than 256 READY endpoints, state changes are batched for up to 1 µs per
// READY endpoint."
func TestChangesOfManyEndpointsAreBatched(t *testing.T) {
	for ready, want := range map[int]time.Duration{1: 0, 256: 0, 257: 257 * time.Microsecond, 1000: time.Millisecond} {
		core := New[int]()
		published := time.Unix(100, 0)
		children := update(core, make([]uint32, ready+1)...)
		for _, child := range children {
			core.Reported(child, Ready, published)
		}
		core.Publish(published)
		core.Reported(children[0], Connecting, published)
		if when, due := core.Due(); !due || !when.Equal(published.Add(want)) {
			t.Errorf("%d are READY: the next picker is due %v after the last (%v), want %v", ready, when.Sub(published), due, want)
		}
	}
}

// An update that changes neither endpoints nor weights must not cause a new picker.
func TestUpdateIsPublishedIfPickerChanges(t *testing.T) {
	for _, test := range []struct {
		about         string
		before, after []uint32
		want          bool
	}{
		{"the same", []uint32{1, 2, 3}, []uint32{1, 2, 3}, false},
		{"the same, scaled down", []uint32{math.MaxUint32, 2, 3}, []uint32{math.MaxUint32, 2, 3}, false},
		{"another weight of the first", []uint32{1, 2, 3}, []uint32{9, 2, 3}, true},
		{"another weight of the last", []uint32{1, 2, 3}, []uint32{1, 2, 9}, true},
		{"another weight, where the sum is the limit", []uint32{math.MaxUint32 - 1, 1}, []uint32{math.MaxUint32 - 3, 1}, true},
		{"one endpoint fewer", []uint32{1, 2, 3}, []uint32{1, 2}, true},
		{"one endpoint more", []uint32{1, 2, 3}, []uint32{1, 2, 3, 4}, true},
	} {
		core := New[int]()
		for _, child := range update(core, test.before...) {
			core.Reported(child, Ready, time.Time{})
		}
		core.Publish(time.Time{})
		update(core, test.after...)
		if core.Previous() != nil {
			t.Errorf("%s: the update has ended, but its previous children are kept", test.about)
		}
		if when, due := core.Due(); due != test.want || !when.IsZero() {
			t.Errorf("%s: due = %v at %v, want %v at once", test.about, due, when, test.want)
		}
	}
}

// If all endpoints have failed, a further failure must be published, because the error of calls may
// change. If an endpoint is READY, a further failure need not be published, but it must not
// suppress an earlier change that has not been published yet.
func TestFurtherFailureIsPublished(t *testing.T) {
	core := New[int]()
	children := update(core, 1, 1, 1)
	for _, child := range children {
		core.Reported(child, TransientFailure, time.Time{})
	}
	core.Publish(time.Time{})
	core.Reported(children[1], TransientFailure, time.Time{})
	if _, due := core.Due(); !due {
		t.Error("all have failed, but a further failure is not due to be published")
	}
	core.Reported(children[0], Ready, time.Time{})
	core.Publish(time.Time{})
	core.Reported(children[2], Ready, time.Time{})
	core.Reported(children[1], TransientFailure, time.Time{})
	if _, due := core.Due(); !due {
		t.Error("a READY endpoint is no longer due to be published after a failure of another")
	}
}
