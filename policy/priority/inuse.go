package priority

import (
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/connectivity"

	"github.com/understudy-lb/understudy/internal/lb/shell"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
)

// reportedPriority is the priority in use that was last reported to the application.
type reportedPriority struct {
	child  string // "" if no priority can take calls
	since  time.Time
	reason string
}

// reportInUse reports the priority in use to the application. If another priority has come into
// use, cause is the reason that was just logged. Otherwise, cause is "".
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

// inUseReason returns the reason why child is in use. If child is "", it returns the reason why no
// priority can take calls.
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
	return "" // the highest priority has been in use from the start
}
