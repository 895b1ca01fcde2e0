package rehearse

import (
	"context"
	"testing"
	"time"

	"github.com/understudy-lb/understudy/internal/core/join"
)

// lostSeconds returns how many seconds' calls are lost, and what each priority answers.
func lostSeconds(w World) (float64, []int) {
	o := Play(context.Background(), w, 1)
	return float64(o.Lost) / w.Rate, o.sum(0, len(o.Seconds)).Answered
}

// New clients wait for the first source, but not longer than core/join says. Then they use the others.
func TestSourceSilent(t *testing.T) {
	patience := join.Patience.Seconds()
	lost, answered := lostSeconds(restarted(minute(0, SourceSilent, 0)))
	if lost < patience-2 || lost > patience+1 || answered[1] < 150*45 {
		t.Errorf("the calls of %.1f s are lost, and %v are answered; want those of about %v s, and most of the minute answered by p1", lost, answered, patience)
	}
	longer := restarted(minute(0, SourceSilent, 0))
	longer.Policy.FailoverTimeout = 30 * time.Second
	if lost, _ := lostSeconds(longer); lost < 28 || lost > 31 {
		t.Errorf("with a failover timeout of 30 s, the calls of %.1f s are lost", lost)
	}
	only := restarted(minute(2, SourceSilent, 0)) // a fault of the source concerns all of its priorities
	only.Entries = nil
	if lost, _ := lostSeconds(only); lost < 58 || lost > 61 {
		t.Errorf("with one source, the calls of %.1f s are lost, want those of 60 s", lost)
	}
}

// A source that fails at once delays nothing, and one that is not needed costs nothing.
func TestSourceFails(t *testing.T) {
	for _, event := range []Event{minute(0, SourceFails, 0), minute(1, SourceSilent, 0)} {
		if lost, answered := lostSeconds(restarted(event)); lost > 0 {
			t.Errorf("fault %d of source %d: the calls of %.1f s are lost, and %v are answered", event.Fault, event.Priority, lost, answered)
		}
	}
	only := restarted(minute(0, SourceFails, 0))
	only.Entries = nil
	ends := make(map[End]int)
	Run(only, 1, Observer{Ended: func(c Call) { ends[c.End]++ }})
	if ends[NoConnection] < 150*58 || ends[Waited] > 0 {
		t.Errorf("calls end as %v, want those of a minute to fail without waiting", ends)
	}
}

// A client that has endpoints keeps them.
func TestSourceFailsLater(t *testing.T) {
	w := restarted(minute(0, SourceFails, 0), minute(1, SourceSilent, 0))
	w.Restart = 0
	if lost, answered := lostSeconds(w); lost > 0 || answered[1] > 0 {
		t.Errorf("the calls of %.1f s are lost, and %v are answered; want all by p0", lost, answered)
	}
}

// The near groups of a silent source are missing together, and come back as near groups.
func TestSourceOfNearGroups(t *testing.T) {
	w := restarted(minute(0, SourceSilent, 0))
	w.Entries, w.Policy.SourcePriorities = []string{"a", "a", "b"}, []int{0, 0, 1}
	lost, answered := lostSeconds(w)
	if lost < 8 || lost > 11 || answered[1] > 1000 || answered[2] < 150*45 || answered[0] < 150*40 {
		t.Errorf("the calls of %.1f s are lost, and %v are answered; want those of 10 s, p2 in the fault, and then p0", lost, answered)
	}
}
