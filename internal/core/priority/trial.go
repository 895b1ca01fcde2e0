package priority

import "time"

// A trial is a call to a child that is not in use. A child on trial gets one when FewestCalls calls
// have gone to other children or have waited since the last trial, and either an interval has
// passed or there were manyCalls of them. If the child has not recovered, a client that makes few
// calls loses at most one in ten, and a client that makes many loses one in a hundred.
const (
	FewestCalls = 10
	manyCalls   = 100
)

// TrialIsDue reports whether a trial is due. elsewhere is the number of calls to other children
// since the last trial, and since is the time that has passed.
func TrialIsDue(elsewhere int64, since, interval time.Duration) bool {
	return elsewhere >= manyCalls || elsewhere >= FewestCalls && since >= interval
}
