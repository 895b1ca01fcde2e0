package priority

import "time"

// A child on trial receives one call after at least FewestCalls calls have gone to other children
// or are waiting, and either their number has reached manyCalls or an interval has passed. A broken
// child therefore costs a slow client at most 1 call in 10, and a fast client at most 1 call in
// 100.
const (
	FewestCalls = 10
	manyCalls   = 100
)

// TrialIsDue reports whether a trial is due, given the number of calls elsewhere and the time since
// the last trial.
func TrialIsDue(elsewhere int64, since, interval time.Duration) bool {
	return elsewhere >= manyCalls || elsewhere >= FewestCalls && since >= interval
}
