package share

import "time"

// Link is what a share must know of its priority's connections.
type Link struct {
	Ready    bool
	WasReady bool // at any time
	LostAt   time.Duration
}

// NewLink returns the link of a priority that has no connections yet.
func NewLink() Link { return Link{LostAt: -time.Hour} }

// Note records whether the priority is READY, and reports whether it has become READY.
func (l *Link) Note(now time.Duration, ready bool) (returned bool) {
	if l.Ready && !ready {
		l.LostAt = now
	}
	returned = ready && !l.Ready
	l.Ready = ready
	return returned
}

// MayBeCold reports whether a priority that has become READY may be cold, so that Share.Returned is to
// be called: a lower one is READY. At the start of a channel, while no calls are offered or within the
// failover timeout, the lower one may just have been quicker.
func (l *Link) MayBeCold(isLowest, isStart bool) bool {
	isFirst := !l.WasReady && isStart
	l.WasReady = true
	return !isLowest && !isFirst
}
