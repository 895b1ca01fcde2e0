package priority

import "time"

// A child on trial gets one call once FewestCalls have gone elsewhere, or wait, since its last
// call or trial, and either manyCalls have or an interval has passed. So a broken one costs at
// most one call in ten of a slow client, and one in a hundred of a fast one.
const (
	FewestCalls = 10
	manyCalls   = 100
)

// TrialIsDue returns whether a trial is due after so many calls elsewhere, and so much time.
func TrialIsDue(elsewhere int64, since, interval time.Duration) bool {
	return elsewhere >= manyCalls || elsewhere >= FewestCalls && since >= interval
}
