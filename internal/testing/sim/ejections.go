package sim

import (
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
)

// ejectedLine checks the log line of an ejection. The outlier detection of the endpoint's priority
// must explain it. A simultaneous update may not have reached the policy yet.
func (w *World) ejectedLine(m []string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	address, by := m[1], m[2]
	c := w.conditions[address]
	switch {
	case c == nil || !w.ever[address]:
		return "it was never one of the channel's"
	case time.Since(w.openedAt) == 0:
		return "" // the line may come from a channel that is closing
	case c.works() && c.underWay == 0 && time.Since(c.since) > w.settings.patience(1) && time.Since(c.failed) > w.settings.patience(1):
		return fmt.Sprintf("it has worked for %v, and no call to it has failed for %v", time.Since(c.since), time.Since(c.failed))
	}
	c.out = true
	if w.shared(address) {
		c.ejected = time.Time{} // the line does not say which of its priorities has ejected it
		return ""
	}
	tiers := w.known
	if time.Since(w.knownAt) == 0 {
		tiers = slices.Concat(w.known, w.before)
	}
	wrong := "no priority has it"
	for _, tier := range tiers {
		if slices.Contains(tier.Serving(), address) {
			if wrong = w.unfounded(address, by, tier); wrong == "" {
				break
			}
		}
	}
	c.ejected = time.Now()
	return wrong
}

func (w *World) unfounded(address, by string, tier Tier) string {
	d, c, serving := tier.detection(), w.conditions[address], tier.Serving()
	interval, changed := d.interval, time.Since(w.detected) < 2*longestInterval
	if changed {
		interval = longestInterval // the last interval may have been longer
	}
	failed, succeeded, all := c.within(interval)
	if changed {
		succeeded = 0 // the successes may have come before the interval
	}
	switch {
	case !d.ejects():
		return "its priority has no outlier detection"
	case by == "consecutive_failures" && (d.failures == 0 || c.row() < int(d.failures)):
		return fmt.Sprintf("%d calls in a row failed, want %d", c.row(), d.failures)
	case by == "failure_percentage" && d.percentage.enforced == 0, by == "success_rate" && d.rate.enforced == 0:
		return "this algorithm is not enforced"
	case by == "failure_percentage" && len(serving) < int(d.percentage.hosts):
		return fmt.Sprintf("there are %d endpoints, want %d", len(serving), d.percentage.hosts)
	case by == "failure_percentage" && (all < int(d.percentage.volume) || 100*failed <= int(d.percentage.limit)*(failed+succeeded)):
		return fmt.Sprintf("of %d calls in %v at most %d failed, and %d did not", all, interval, failed, succeeded)
	case by == "success_rate" && (all < int(d.rate.volume) || failed == 0):
		return fmt.Sprintf("of %d calls in %v none failed, or there were too few", all, interval)
	case by == "success_rate" && w.voluminous(serving, interval, d.rate.volume) < int(d.rate.hosts):
		return fmt.Sprintf("%d endpoints had enough calls, want %d", w.voluminous(serving, interval, d.rate.volume), d.rate.hosts)
	}
	if w.isOut(d, address) {
		return fmt.Sprintf("it was ejected %v ago, for %v and more", time.Since(c.ejected), d.base)
	}
	if out := w.out(d, serving, address); out >= d.atMost(len(serving)) {
		return fmt.Sprintf("%d others of %d are ejected, of which at most %d may be", out, len(serving), d.atMost(len(serving)))
	}
	return ""
}

// voluminous returns how many of the endpoints may have had at least volume calls.
func (w *World) voluminous(addresses []string, within time.Duration, volume uint32) (n int) {
	for _, address := range addresses {
		if _, _, all := w.conditions[address].within(within); all >= max(1, int(volume)) {
			n++
		}
	}
	return n
}

// out returns how many of the endpoints, not counting except, are certainly ejected.
func (w *World) out(d detection, addresses []string, except string) (n int) {
	for _, address := range addresses {
		if address != except && w.isOut(d, address) {
			n++
		}
	}
	return n
}

// shared reports whether an endpoint was in several priorities in one of the last two updates.
func (w *World) shared(address string) bool {
	for _, truth := range []Truth{w.known, w.before} {
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

// isOut reports whether an endpoint is certainly still ejected: the shortest ejection is not over,
// and no later event may have ended it.
func (w *World) isOut(d detection, address string) bool {
	at := w.conditions[address].ejected
	return time.Since(at) < d.base && at.After(w.knownAt) && at.After(w.phased) && at.After(w.openedAt)
}

// emptiedLine checks a log line about a priority whose endpoints are all ejected.
func (w *World) emptiedLine(m []string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch m[2] {
	case "not all of its endpoints are ejected any more":
		w.phased = time.Now()
	case "a few calls show whether its endpoints are well again": // endpoints may now come back without a log line
		w.phased = time.Now().Add(longestUnrest)
	}
	// Shortly after the channel has opened or has received an update, its connections are new and
	// have no health status yet.
	if m[1] != w.shown || time.Since(w.openedAt) < time.Second || time.Since(w.knownAt) < time.Second {
		return ""
	}
	emptied := func(tier Tier) bool {
		return tier.detection().ejects() && !slices.ContainsFunc(tier.Serving(), func(address string) bool {
			c := w.conditions[address]
			if c.out && !w.answers(address) {
				return false // it was ejected and does not answer yet
			}
			if time.Since(c.reset) < 2*time.Second && w.network.Connected(address).IsZero() {
				return false // it has lost its connection and has not reconnected
			}
			return c.ejected.IsZero() && !w.shared(address) && c.connects() && time.Since(c.since) > w.settings.patience(1) && c.answered.After(c.since)
		})
	}
	if m[2] == "calls to all of its endpoints fail" && !slices.ContainsFunc(slices.Concat(w.known, w.before), emptied) {
		return "no priority has outlier detection in which each endpoint was ejected or could not be reached"
	}
	return ""
}

// checkEjections looks for endpoints that answer each call with an error and are not ejected. It
// ignores uncertain cases.
func (w *World) checkEjections() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, tier := range w.known {
		d, serving := tier.detection(), tier.Serving()
		for _, address := range serving {
			c := w.conditions[address]
			if w.answers(address) && !c.proven.IsZero() && c.answered.Sub(c.proven) > 2*d.interval {
				c.ejected, c.out = time.Time{}, false // it has worked for a whole interval, so it must be back
			}
			full := d.atMost(len(serving)) < len(serving) && slices.ContainsFunc(serving, func(other string) bool {
				return other != address && !w.answers(other)
			})
			if full && d.ejects() && !w.conditions[address].works() && w.connects(address) && !w.isOut(d, address) && w.out(d, serving, address) >= d.atMost(len(serving)) {
				w.mark(markFull)
			}
			if !d.ejects() || full || c.out || !c.ejected.IsZero() || w.shared(address) {
				continue
			}
			if wrong := w.overdue(c, d, len(serving)); wrong != "" {
				w.Log.Break(ruleEjected, "%s: %s", address, wrong)
				c.ejected = time.Now()
			}
		}
	}
}

func (w *World) overdue(c *condition, d detection, endpoints int) string {
	begin := c.since // the time of the last change
	for _, t := range []time.Time{w.knownAt, w.openedAt} {
		if t.After(begin) {
			begin = t
		}
	}
	if !c.connects() || c.hang || c.answer != codes.Unavailable {
		return ""
	}
	var failed []time.Time
	for _, e := range slices.Backward(c.ended) {
		idle := len(failed) > 0 && failed[len(failed)-1].Sub(e.at) >= childKept // the child may have been removed together with its counts
		if !e.failed || !e.at.After(begin) || idle {
			break
		}
		failed = append(failed, e.at)
	}
	if d.failures > 0 && len(failed) > int(d.failures) {
		return fmt.Sprintf("%d calls in a row failed, and it is not ejected", len(failed))
	}
	volume := max(1, int(d.percentage.volume))
	if d.percentage.enforced < 100 || d.percentage.limit == 100 || endpoints < int(d.percentage.hosts) || time.Since(begin) < 2*d.interval+time.Second {
		return ""
	}
	// The last complete interval began between one and two intervals ago. Try each possible time.
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
