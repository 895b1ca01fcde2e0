package priority

import "time"

// A child on trial receives one call after FewestCalls calls have gone elsewhere, or wait, and
// either manyCalls have or an interval has passed. So a broken child costs at most 1 of 10 calls of
// a slow client, and 1 of 100 calls of a fast one.
const (
	FewestCalls = 10
	manyCalls   = 100
)

// TrialIsDue reports whether a trial is due after a number of calls elsewhere and a time.
func TrialIsDue(elsewhere int64, since, interval time.Duration) bool {
	return elsewhere >= manyCalls || elsewhere >= FewestCalls && since >= interval
}
