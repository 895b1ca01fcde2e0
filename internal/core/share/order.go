package share

type Standing struct {
	Depth  Depth
	Wanted bool // we need another priority, because this is the last READY one and it can't carry all of its calls
	Fails  bool // what would open any other breaker has happened to this last priority, and there's been no good answer since
}

type Depth int

const (
	Whole   Depth = iota
	Part          // the share is at least 1/2
	Low           // the share is less than 1/2
	Tripped       // the breaker is open
)

func (s *Share) Standing() Standing {
	depth := Tripped
	switch {
	case s.fraction == 1:
		depth = Whole
	case s.fraction >= 0.5:
		depth = Part
	case s.fraction > 0:
		depth = Low
	}
	return Standing{depth, s.wanted, s.failing}
}

// Place is what we need to know about a priority to rank it.
type Place struct {
	Ready    bool
	Awaited  bool     // calls may wait for it to become READY
	Standing Standing // set if the priority is READY
}

// Last returns the index of the last priority in order, i.e. the one that can't leave calls to
// another. Usually that's the lowest READY priority. But if all breakers are open and some lower
// priority may still connect, calls wait for that one instead of being refused. No priority is the
// last one then, and Last returns -1.
func Last(order []Place) int {
	tripped := true
	for _, p := range order {
		tripped = tripped && (!p.Ready || p.Standing.Depth == Tripped)
	}
	for i := len(order) - 1; i >= 0; i-- {
		switch p := order[i]; {
		case p.Ready:
			return i
		case p.Awaited && tripped:
			return -1
		}
	}
	return -1
}

// Short returns the lowest READY priority that can't carry its calls, or whose share is still below
// 1. If there's none, it returns -1. We want one more priority below it, and keep those we have.
func Short(order []Place) int {
	for i := len(order) - 1; i >= 0; i-- {
		if p := order[i]; p.Ready && (p.Standing.Wanted || p.Standing.Depth != Whole) {
			return i
		}
	}
	return -1
}

// Leftover decides what to do with a call that no READY priority takes. We offer it as a probe to
// one priority after another, and the first one whose breaker wants a probe can send it. If none
// does, the call waits, provided that all breakers are open and there's another priority to wait
// for. Otherwise it's refused.
func Leftover(ready int, awaited bool, probe func(i int) (sent, tripped bool)) (sent, waits bool) {
	allTripped := true
	for i := range ready {
		sent, tripped := probe(i)
		if sent {
			return true, false
		}
		allTripped = allTripped && tripped
	}
	return false, allTripped && awaited
}
