package understudy

import (
	"time"

	"google.golang.org/grpc/connectivity"

	"github.com/understudy-lb/understudy/internal/stateattr"
)

// PriorityInUse is the priority of a channel that has its calls, for Options.PriorityChanged:
// for an alert, a readiness probe, or a switch that turns features off on a lower priority.
type PriorityInUse struct {
	// Target is the channel's, without passwords and tokens.
	Target string
	// Index is the number of the priority: 0 is the highest. It is -1 where no priority can
	// take calls, and they fail.
	Index int
	// Name is what the log calls it, such as "p0 us-east/a, us-east/b"; "none" for none.
	Name string
	// State is READY where calls are sent, CONNECTING where they wait for a connection, IDLE
	// where the next call makes one, and TRANSIENT_FAILURE for none.
	State connectivity.State
	// Since is when it came into use. Another State of the same priority leaves it as it is.
	Since time.Time
	// Why says why it came into use, in the words of the log: what has become of the one before,
	// or why no priority can take calls. It is "" for the highest priority at the beginning.
	Why string
}

// teller returns what tells the program which priority is in use.
func (o Options) teller() *stateattr.InUseReporter {
	tell := o.PriorityChanged
	if tell == nil {
		return nil
	}
	return stateattr.NewInUseReporter(func(p stateattr.PriorityInUse) { tell(PriorityInUse(p)) })
}
