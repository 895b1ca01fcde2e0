package understudy

import (
	"time"

	"google.golang.org/grpc/connectivity"

	"github.com/understudy-lb/understudy/internal/stateattr"
)

// PriorityInUse describes the priority that a channel sends its calls to. Use it in
// Options.PriorityChanged for alerts, readiness probes or feature switches.
type PriorityInUse struct {
	// Target is the target of the channel, without passwords and tokens.
	Target string
	// Index is the number of the priority; 0 is the highest. It is -1 if no priority can take calls
	// and calls fail.
	Index int
	// Name is the name of the priority in the log, such as "p0 us-east/a, us-east/b", or "none".
	Name string
	// State is READY if calls are being sent, CONNECTING if calls wait for a connection, IDLE if
	// the next call starts a connection, and TRANSIENT_FAILURE if no priority can take calls.
	State connectivity.State
	// Since is the time at which the priority came into use. It does not change when State changes.
	Since time.Time
	// Why is the reason for the change, worded as in the log: why the previous priority failed, or
	// why no priority can take calls. It is empty for the initial highest priority.
	Why string
}

func (o Options) inUseReporter() *stateattr.InUseReporter {
	changed := o.PriorityChanged
	if changed == nil {
		return nil
	}
	return stateattr.NewInUseReporter(func(p stateattr.PriorityInUse) { changed(PriorityInUse(p)) })
}
