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

// Note records whether the priority is READY. returned is true if it has become READY just now.
func (l *Link) Note(now time.Duration, ready bool) (returned bool) {
	if l.Ready && !ready {
		l.LostAt = now
	}
	returned = ready && !l.Ready
	l.Ready = ready
	return returned
}

// MayBeCold is true for a priority that becomes READY while a lower one is: then call
// Share.Returned. At the start of a channel, while no calls are offered or within the failover
// timeout, the lower one may just have been quicker.
func (l *Link) MayBeCold(isLowest, isStart bool) bool {
	isFirst := !l.WasReady && isStart
	l.WasReady = true
	return !isLowest && !isFirst
}
