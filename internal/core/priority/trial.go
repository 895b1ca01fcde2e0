package priority

import "time"

// A trial is a call to a child that is not in use. It shows whether the child has recovered. The
// next trial of a child follows after manyCalls calls to other children, or after FewestCalls such
// calls if an interval has passed. Waiting calls count, too. If the child has not recovered, a
// client that makes few calls therefore loses at most one in ten, and a client that makes many
// calls loses one in a hundred.
const (
	FewestCalls = 10
	manyCalls   = 100
)

// TrialIsDue reports whether the next trial of a child is due. otherCalls is the number of calls to
// other children since its last trial, and sinceLast is the time that has passed since then.
func TrialIsDue(otherCalls int64, sinceLast, interval time.Duration) bool {
	return otherCalls >= manyCalls || otherCalls >= FewestCalls && sinceLast >= interval
}
