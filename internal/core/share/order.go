package share

// Standing is what is known of one of the priorities of a channel.
type Standing struct {
	Ready   bool
	Awaited bool // it is not READY, but calls may wait for it
	Tripped bool // its breaker is open
}

// Last returns which of the priorities, in order, is the last one: it cannot leave calls to another.
// That is the lowest READY one. There is no last one, and Last returns -1, if all breakers are open
// and a lower priority may still connect: calls wait for it then, and are not refused.
func Last(order []Standing) int {
	tripped := AllTripped(order)
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

// AllTripped reports whether no READY priority takes more than probes.
func AllTripped(order []Standing) bool {
	for _, p := range order {
		if p.Ready && !p.Tripped {
			return false
		}
	}
	return true
}
