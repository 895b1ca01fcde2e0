package sim

import (
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
)

func (w *World) ejectedLine(m []string) string {
	// The outlier detection of the endpoint's priority, in the last update or in the update before
	// a simultaneous one, must justify the ejection.
	w.mu.Lock()
	defer w.mu.Unlock()
	address, algorithmName := m[1], m[2]
	c := w.conditions[address]
	switch {
	case c == nil || !w.everKnown[address]:
		return "it was never one of the channel's"
	case time.Since(w.openedAt) == 0:
		return "" // the old channel, which is closing, may have logged the line
	case w.load != nil:
		return "" // late answers of a full backend count as failures
	case c.works() && c.inFlight == 0 && time.Since(c.changedAt) > w.settings.maxFailoverTime(1) && time.Since(c.lastFailure) > w.settings.maxFailoverTime(1):
		return fmt.Sprintf("it has worked for %v, and no call to it has failed for %v", time.Since(c.changedAt), time.Since(c.lastFailure))
	}
	again := c.wasEjected
	c.wasEjected = true
	if w.inSeveralPriorities(address) {
		c.ejectedAt = time.Time{} // the log line does not name the priority that has ejected the endpoint
		return ""
	}
	tiers := w.knownTruth
	if time.Since(w.updatedAt) == 0 {
		tiers = slices.Concat(w.knownTruth, w.previousTruth)
	}
	problem := "no priority has it"
	for _, tier := range tiers {
		if slices.Contains(tier.Serving(), address) {
			if problem = w.checkEjection(address, algorithmName, tier, again); problem == "" {
				break
			}
		}
	}
	c.ejectedAt = time.Now()
	return problem
}

func (w *World) checkEjection(address, algorithmName string, tier Tier, again bool) string {
	// With overflow, an endpoint that is ejected again has not answered since, and one failure is
	// enough.
	d, c, serving := tier.detection(), w.conditions[address], tier.Serving()
	interval, changed := d.interval, time.Since(w.detectionChangedAt) < 2*maxInterval
	if changed {
		interval = maxInterval // the interval may have been longer before the change
	}
	failed, succeeded, all := c.countAttempts(interval)
	if changed {
		succeeded = 0 // the interval may have been shorter before the change, without these successes
	}
	switch {
	case !d.ejects():
		return "its priority has no outlier detection"
	case algorithmName == "consecutive_failures" && (!again || !w.settings.overflow) && (d.consecutiveFailures == 0 || c.maxConsecutiveFailures() < int(d.consecutiveFailures)):
		return fmt.Sprintf("%d calls in a row failed, want %d", c.maxConsecutiveFailures(), d.consecutiveFailures)
	case algorithmName == "failure_percentage" && d.failurePercentage.enforcement == 0, algorithmName == "success_rate" && d.successRate.enforcement == 0:
		return "this algorithm is not enforced"
	case algorithmName == "failure_percentage" && len(serving) < int(d.failurePercentage.minHosts):
		return fmt.Sprintf("there are %d endpoints, want %d", len(serving), d.failurePercentage.minHosts)
	case algorithmName == "failure_percentage" && (all < int(d.failurePercentage.minVolume) || 100*failed <= int(d.failurePercentage.threshold)*(failed+succeeded)):
		return fmt.Sprintf("of %d calls in %v at most %d failed, and %d did not", all, interval, failed, succeeded)
	case algorithmName == "success_rate" && (all < int(d.successRate.minVolume) || failed == 0):
		return fmt.Sprintf("of %d calls in %v none failed, or there were too few", all, interval)
	case algorithmName == "success_rate" && w.countWithVolume(serving, interval, d.successRate.minVolume) < int(d.successRate.minHosts):
		return fmt.Sprintf("%d endpoints had enough calls, want %d", w.countWithVolume(serving, interval, d.successRate.minVolume), d.successRate.minHosts)
	}
	if w.stillEjected(d, address) {
		return fmt.Sprintf("it was ejected %v ago, for %v and more", time.Since(c.ejectedAt), d.baseEjection)
	}
	if ejected := w.countEjected(d, serving, address); ejected >= d.maxEjected(len(serving)) {
		return fmt.Sprintf("%d others of %d are ejected, of which at most %d may be", ejected, len(serving), d.maxEjected(len(serving)))
	}
	return ""
}

func (w *World) countWithVolume(addresses []string, within time.Duration, volume uint32) (n int) {
	for _, address := range addresses {
		if _, _, all := w.conditions[address].countAttempts(within); all >= max(1, int(volume)) {
			n++
		}
	}
	return n
}

// countEjected does not count the endpoint except.
func (w *World) countEjected(d detection, addresses []string, except string) (n int) {
	for _, address := range addresses {
		if address != except && w.stillEjected(d, address) {
			n++
		}
	}
	return n
}

func (w *World) inSeveralPriorities(address string) bool {
	for _, truth := range []EndpointSet{w.knownTruth, w.previousTruth} {
		n := 0
		for _, known := range truth.serving() {
			if known == address {
				n++
			}
		}
		if n > 1 {
			return true
		}
	}
	return false
}

// stillEjected is true if an endpoint is certainly still ejected: less than the base ejection time
// has passed since the ejection, and nothing else can have ended it.
func (w *World) stillEjected(d detection, address string) bool {
	ejectedAt := w.conditions[address].ejectedAt
	return time.Since(ejectedAt) < d.baseEjection && ejectedAt.After(w.updatedAt) && ejectedAt.After(w.openedAt) &&
		(!w.settings.overflow || !w.conditions[address].lastSuccess.After(ejectedAt))
}

// checkEjections ignores endpoints for which the result of outlier detection is not certain.
func (w *World) checkEjections() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.load != nil {
		return
	}
	for _, tier := range w.knownTruth {
		d, serving := tier.detection(), tier.Serving()
		for _, address := range serving {
			c := w.conditions[address]
			if w.certainlyUsable(address) && !c.firstSuccess.IsZero() && c.lastSuccess.Sub(c.firstSuccess) > 2*d.interval {
				c.ejectedAt, c.wasEjected = time.Time{}, false // it has worked for a whole interval, so it is no longer ejected
			}
			limitReached := d.maxEjected(len(serving)) < len(serving) && slices.ContainsFunc(serving, func(other string) bool {
				return other != address && !w.certainlyUsable(other)
			})
			if limitReached && d.ejects() && !w.conditions[address].works() && w.reachable(address) && !w.stillEjected(d, address) && w.countEjected(d, serving, address) >= d.maxEjected(len(serving)) {
				w.mark(markEjectionLimit)
			}
			if !d.ejects() || limitReached || c.wasEjected || !c.ejectedAt.IsZero() || w.inSeveralPriorities(address) {
				continue
			}
			if problem := w.missingEjection(c, d, len(serving)); problem != "" {
				w.Log.Break(ruleEjected, "%s: %s", address, problem)
				c.ejectedAt = time.Now()
			}
		}
	}
}

func (w *World) missingEjection(c *condition, d detection, endpoints int) string {
	begin := c.changedAt // the last time at which the endpoint or the channel changed
	for _, t := range []time.Time{w.updatedAt, w.openedAt} {
		if t.After(begin) {
			begin = t
		}
	}
	if !c.reachable() || c.hang || c.code != codes.Unavailable {
		return ""
	}
	var failed []time.Time
	for _, e := range slices.Backward(c.attempts) {
		childRemoved := len(failed) > 0 && failed[len(failed)-1].Sub(e.endedAt) >= childRetention // the child and its counts may have been removed
		if !e.failed || !e.endedAt.After(begin) || childRemoved {
			break
		}
		failed = append(failed, e.endedAt)
	}
	if d.consecutiveFailures > 0 && len(failed) > int(d.consecutiveFailures) {
		return fmt.Sprintf("%d calls in a row failed, and it is not ejected", len(failed))
	}
	volume := max(1, int(d.failurePercentage.minVolume))
	if d.failurePercentage.enforcement < 100 || d.failurePercentage.threshold == 100 || endpoints < int(d.failurePercentage.minHosts) || time.Since(begin) < 2*d.interval+time.Second {
		return ""
	}
	// The last complete interval began between one and two intervals ago. The endpoint is overdue
	// only if all possible intervals have enough failures.
	for start := 2 * d.interval; start >= d.interval; start -= time.Second / 2 {
		from := time.Now().Add(-start)
		n := 0
		for _, at := range failed {
			if at.After(from) && at.Before(from.Add(d.interval)) {
				n++
			}
		}
		if n <= volume {
			return ""
		}
	}
	return fmt.Sprintf("all of its calls failed for %v, and it is not ejected", 2*d.interval)
}
