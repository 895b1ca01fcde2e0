package priority

import (
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/connectivity"

	"github.com/understudy-lb/understudy/internal/shell"
	"github.com/understudy-lb/understudy/internal/stateattr"
)

// told is the priority in use as the application was last notified of it.
type told struct {
	child string // "" if no priority can take calls
	since time.Time
	why   string
}

// tellInUse notifies the application of the priority in use. If it has changed, why is the reason
// that was just logged, otherwise "".
func (p *policy) tellInUse(why string) {
	to := stateattr.ChannelOf(p.state).InUse
	if to == nil {
		return
	}
	now := stateattr.PriorityInUse{Index: stateattr.NoPriority, Name: stateattr.NoName, State: p.published.ConnectivityState}
	child := p.inUse
	if now.State == connectivity.TransientFailure {
		child = ""
	}
	if child != "" {
		now.Index, now.Name = slices.Index(p.config.Priorities, child), p.title(child)
	}
	if before := p.journal.told; before.since.IsZero() || before.child != child {
		p.journal.told = told{child, time.Now(), p.whyInUse(child, why, before)}
	}
	now.Since, now.Why = p.journal.told.since, p.journal.told.why
	to.Tell(now)
}

// whyInUse returns the reason why a child is in use or, if child is "", why no priority can take
// calls.
func (p *policy) whyInUse(child, why string, before told) string {
	switch {
	case child == "":
		return fmt.Sprint(shell.FailureOf(p.published.Picker))
	case !before.since.IsZero() && before.child == "":
		return p.whyBack(child)
	case why != "":
		return why
	case child != p.config.Priorities[0]:
		return p.why(p.config.Priorities[0])
	}
	return "" // the highest priority has been in use from the start
}
