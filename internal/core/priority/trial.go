package priority

import "time"

// A trial is a call to a child that is not in use. A child on trial gets one when FewestCalls calls
// have gone to other children or are waiting since the last trial, and either an interval has
// passed or there were manyCalls of them. While the child is broken, a client that makes few calls
// loses one in ten or fewer, and a client that makes many loses one in a hundred.
const (
	FewestCalls = 10
	manyCalls   = 100
)

// TrialIsDue reports whether a trial is due. elsewhere counts the calls to other children since the
// last trial, and since is the time that has passed.
func TrialIsDue(elsewhere int64, since, interval time.Duration) bool {
	return elsewhere >= manyCalls || elsewhere >= FewestCalls && since >= interval
}
