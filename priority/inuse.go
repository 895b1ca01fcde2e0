package priority

import (
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/connectivity"

	"github.com/understudy-lb/understudy/internal/shell"
	"github.com/understudy-lb/understudy/internal/stateattr"
)

// told is what the application was last told about the priority in use.
type told struct {
	child string // "" if no priority can take calls
	since time.Time
	why   string
}

// tellInUse tells the application which priority is in use. why is the reason that was just logged
// for a change, or "".
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

// whyInUse returns why a child is in use. If child is "", it returns why no priority can take
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
