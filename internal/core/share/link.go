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

// MayBeCold is called when a priority has become READY. If it returns true, the priority's servers
// may have cold caches, and the caller must call Share.Returned. That's only the case if a lower
// priority is READY, too. isStart is true at the start of a channel, i.e. while calls aren't
// offered yet or the failover timeout hasn't passed. If that's when the priority connects for the
// first time, the lower one may just have been quicker.
func (l *Link) MayBeCold(isLowest, isStart bool) bool {
	isFirst := !l.WasReady && isStart
	l.WasReady = true
	return !isLowest && !isFirst
}
