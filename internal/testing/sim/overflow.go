package sim

import (
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"
)

// This file checks channels with overflow from their callers' point of view. It doesn't know any
// shares; it just says that a priority that's READY and has worked for long enough must have a
// share of 1.

// maxRecoveryTime returns how long it may take until most calls go to a priority that works again.
// That's the longest back-off of probes, plus the calls that the ramp takes at a low rate. The
// caller holds the lock.
func (w *World) maxRecoveryTime() time.Duration { return w.timeOfRamp(120) }

// maxTimeBelowOne allows for the 186 answers that it takes from 1/16 on, each of which makes the
// share grow by as much as in a second. Since chance decides which answers the priority gets, there
// may be 52 more or fewer. The caller holds the lock.
func (w *World) maxTimeBelowOne() time.Duration { return w.timeOfRamp(186 + 4*52) }

func (w *World) timeOfRamp(calls time.Duration) time.Duration {
	if !w.settings.overflow {
		return 0
	}
	return time.Minute + time.Duration(float64(calls*w.callEach)*max(1, w.settings.ramp.Seconds()/8))
}

func (w *World) isWell(c *condition) bool { return !c.reachable() || c.works() && c.link.Rate == 0 }

// prioritiesThatMayTakeCalls returns the priorities that may be in use once everything has settled:
// those with a reachable endpoint, down to the first one whose reachable endpoints all work. A
// priority below one that takes calls may still be ramping up, since it gets few calls. The caller
// holds the lock.
func (w *World) prioritiesThatMayTakeCalls(truth EndpointSet) (all []int) {
	for i, tier := range truth {
		reachable, certain := 0, 0
		for _, address := range tier.Serving() {
			if w.reachable(address) {
				reachable++
				if w.certainlyUsable(address) {
					certain++
				}
			}
		}
		if reachable > 0 {
			all = append(all, i)
		}
		if certain > 0 && certain == reachable && (len(all) == 1 || w.channel.isFirst(i, w.maxRecoveryTime())) {
			break
		}
	}
	return all
}

// sharesVary is true if a priority that works may still get fewer than all calls. Its backends may
// be full, or it may have streams with deadlines, whose lengths look like load.
func (w *World) sharesVary() bool {
	return w.settings.overflow && (w.load != nil || w.pair != nil && w.pair.streamsHaveDeadline)
}

// takesAll is true if the channel's priority i must have a share of 1. It must have been the
// highest READY one for long enough, and its reachable endpoints must have answered all calls. The
// caller holds the lock.
func (w *World) takesAll(i int) bool {
	rest := w.settleTime() + w.maxRestTime()
	if w.sharesVary() || time.Since(w.updatedAt) < rest || time.Since(w.openedAt) < rest || !w.channel.isFirst(i, rest) {
		return false
	}
	return !slices.ContainsFunc(w.knownTruth[i].Serving(), func(address string) bool {
		c := w.conditions[address]
		return !w.isWell(c) || time.Since(c.changedAt) < rest || time.Since(c.lastFailure) < rest
	})
}

func (c *channel) isFirst(i int, d time.Duration) bool {
	// A lower priority may still have a share below 1 from earlier trouble, since it gets no calls
	// that could change it.
	c.mu.Lock()
	defer c.mu.Unlock()
	for j, name := range c.priorities[:min(i+1, len(c.priorities))] {
		child := c.children[name]
		if child == nil && j == i || child != nil && ((child.state == connectivity.Ready) != (j == i) || time.Since(child.readySince) < d) {
			return false
		}
	}
	return i < len(c.priorities)
}

// checkOrder must be called with the lock held.
func (w *World) checkOrder(address string) {
	if !w.settings.overflow {
		return
	}
	for i, tier := range w.knownTruth {
		if slices.Contains(tier.Serving(), address) {
			return
		}
		if w.takesAll(i) {
			w.Log.Break(ruleOrder, "a call went to %s, although p%d is READY and works", address, i)
			return
		}
	}
}

// connectAndCall is how many delays of the link it takes to connect and then make a call.
const connectAndCall = 12

// mayFail is true if a call may fail even though the channel must have noticed that the priority
// fails. There are several reasons. It may be a probe, and those back off until they're one in 50
// calls. Refused calls only make the share fall step by step. Also, a row of errors starts over
// after a cut of the share, and only counts calls that began after the first one, so the channel
// may take two answers to notice, or another deadline if there's none. And calls can't leave before
// the next priority has connected.
func (j *judge) mayFail(s *priorityState, now moment, err error) bool {
	if p := j.w.pair; p != nil && now.time.Sub(s.failureNoticed.time) < p.deadline+p.latency {
		return true
	}
	most := 20 + (now.calls-s.failureNoticed.calls)/40
	s.refusedLater = s.refusedLater || status.Code(err) == codes.ResourceExhausted
	if s.refusedLater {
		most += 150
	}
	s.failedLater++
	return s.failedLater <= most
}

func isShed(err error) bool {
	return status.Code(err) == codes.ResourceExhausted && strings.HasPrefix(status.Convert(err).Message(), "shed: ")
}

// checkShed must be called with the lock held.
func (w *World) checkShed() {
	for i := range w.knownTruth {
		if w.takesAll(i) || !w.settings.overflow {
			w.Log.Break(ruleShed, "a call was refused, although p%d is READY and works", i)
		}
	}
}

func (c *channel) checkPublished() {
	// When the channel opens, it may wait for the highest one. The caller holds the lock.
	ready, certain := false, false
	for _, name := range c.priorities {
		if child := c.children[name]; child != nil && child.state == connectivity.Ready {
			ready, certain = true, certain || !child.closed
		}
	}
	mayWait := ready && time.Since(c.updatedAt) < time.Duration(len(c.priorities)+1)*c.w.settings.failoverTimeout
	if c.state == connectivity.Ready && ready || c.state != connectivity.Ready && !certain || mayWait {
		c.disagreedSeconds = 0
		return
	}
	if c.disagreedSeconds++; c.disagreedSeconds == 3 {
		c.w.Log.Break(rulePriority, "for 2 s the priority policy has been %v (children: %s)", c.state, c.states())
	}
}
