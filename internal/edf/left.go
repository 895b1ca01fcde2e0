package edf

import "math/rand/v2"

// Left is the part of its interval 1/weight that an entry still waits before it is
// picked next: (deadline - now) · weight, in (0, 1], as a fixed-point number in which
// Full is 1. It has no unit, so it means the same at another weight and beside other
// entries: that is how a position goes from one scheduler to the next.
//
// Where now falls between entries whose deadlines are equal, of which some have been
// picked and some have not, now counts as one unit of time (1/Full of a period of
// the weights, see Scheduler) before that deadline. So those that have not been
// picked have a Left above 0, and those that have may be above Full by the same
// unit, at most 2^-30 of an interval. Pass such values on as they are.
type Left uint64

const (
	bits62 = 62

	// Full is the Left of an entry that waits its whole interval: one that was just
	// picked, and one in a new scheduler as A34 starts it.
	Full Left = 1 << bits62
)

// RandomLeft returns a Left uniformly distributed over (0, 1].
func RandomLeft() Left { return Left(rand.Uint64N(uint64(Full))) + 1 }
