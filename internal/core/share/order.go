package share

// Standing is the part of a share that concerns other priorities and the log.
type Standing struct {
	Depth  Depth
	Wanted bool // another priority is needed: no other is READY, and this last one cannot carry its calls
	Fails  bool // what opens the breaker of another has happened to this last one, and no good answer since
}

type Depth int

const (
	Whole   Depth = iota // the share is 1
	Part                 // at least a half
	Low                  // less
	Tripped              // 0: the breaker is open
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

// Place is what is known of one of the priorities of a channel.
type Place struct {
	Ready    bool
	Awaited  bool     // it is not READY, but calls may wait for it
	Standing Standing // if it is READY
}

// Last returns which of the priorities, in order, is the last one: it cannot leave calls to
// another. That is the lowest READY one. If all breakers are open and a lower priority may still
// connect, calls wait for it and are not refused: then there is no last one, and the result is -1.
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

// Short returns the lowest READY priority that cannot carry its calls, or -1: we want one more
// below it. As long as a share is less than 1, the priorities below it are kept.
func Short(order []Place) int {
	for i := len(order) - 1; i >= 0; i-- {
		if p := order[i]; p.Ready && (p.Standing.Wanted || p.Standing.Depth != Whole) {
			return i
		}
	}
	return -1
}

// Leftover decides about a call that none of the READY priorities takes. It is a probe for the
// first of them whose breaker wants one, if that one sends it. Otherwise it waits if all breakers
// are open and it may wait for another priority, and is refused if not.
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
