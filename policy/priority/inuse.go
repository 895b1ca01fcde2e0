package priority

import (
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/connectivity"

	"github.com/understudy-lb/understudy/internal/lb/shell"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
)

type reportedPriority struct {
	child  string // "" if no priority can take calls
	since  time.Time
	reason string
}

// reportInUse tells the application about the priority in use. cause is the reason that we've just
// logged, or "" if nothing has changed.
func (p *policy) reportInUse(cause string) {
	reporter := stateattr.ChannelOf(p.state).InUse
	if reporter == nil {
		return
	}
	current := stateattr.PriorityInUse{Index: stateattr.NoPriority, Name: stateattr.NoName, State: p.published.ConnectivityState}
	child := p.inUse
	if current.State == connectivity.TransientFailure {
		child = ""
	}
	if child != "" {
		current.Index, current.Name = slices.Index(p.config.Priorities, child), p.title(child)
	}
	if last := p.journal.reported; last.since.IsZero() || last.child != child {
		p.journal.reported = reportedPriority{child, time.Now(), p.inUseReason(child, cause, last)}
	}
	current.Since, current.Why = p.journal.reported.since, p.journal.reported.reason
	reporter.Report(current)
}

func (p *policy) inUseReason(child, cause string, last reportedPriority) string {
	switch {
	case child == "":
		return fmt.Sprint(shell.FailureOf(p.published.Picker))
	case !last.since.IsZero() && last.child == "":
		return p.failbackReason(child)
	case cause != "":
		return cause
	case child != p.config.Priorities[0]:
		return p.problem(p.config.Priorities[0])
	}
	return "" // it's been the highest priority from the start
}
