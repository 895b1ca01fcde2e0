package priority

import "time"

// A trial is a call to a child that is not in use. A child gets its next trial after at least
// FewestCalls other calls and an interval, or after manyCalls other calls. Calls that wait are
// included. If the child has not recovered, a client with few calls therefore loses at most one in
// ten, and a client with many calls loses one in a hundred.
const (
	FewestCalls = 10
	manyCalls   = 100
)

// TrialIsDue reports whether a child's next trial is due. elsewhere is the number of other calls
// since its last trial, and since is the time that has passed.
func TrialIsDue(elsewhere int64, since, interval time.Duration) bool {
	return elsewhere >= manyCalls || elsewhere >= FewestCalls && since >= interval
}
