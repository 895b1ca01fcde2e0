package share

import "time"

type Link struct {
	Ready    bool
	WasReady bool
	LostAt   time.Duration
}

func NewLink() Link { return Link{LostAt: -time.Hour} }

// Note records whether the priority is READY. It returns true if it has just become READY.
func (l *Link) Note(now time.Duration, ready bool) (returned bool) {
	if l.Ready && !ready {
		l.LostAt = now
	}
	returned = ready && !l.Ready
	l.Ready = ready
	return returned
}

// MayBeCold reports whether a priority that has just become READY may have cold caches, in which
// case the caller must call Share.Returned. It must have lower priorities that are READY. isStart
// is true at the start of a channel, i.e. until calls come in or the failover timeout has passed. A
// first connection then proves nothing, because the lower priority may just have been quicker.
func (l *Link) MayBeCold(isLowest, isStart bool) bool {
	isFirst := !l.WasReady && isStart
	l.WasReady = true
	return !isLowest && !isFirst
}
