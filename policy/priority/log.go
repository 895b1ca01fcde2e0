package priority

import (
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/connectivity"
	estats "google.golang.org/grpc/experimental/stats"

	core "github.com/understudy-lb/understudy/internal/core/priority"
	"github.com/understudy-lb/understudy/internal/core/share"
	"github.com/understudy-lb/understudy/internal/lb/shell"
	"github.com/understudy-lb/understudy/internal/lb/tally"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

var failoversMetric = estats.RegisterInt64Count(estats.MetricDescriptor{
	Name:        "understudy.priority.failovers",
	Description: "Changes of the priority in use: failovers and failbacks.",
	Unit:        "{failover}",
	Labels:      []string{"grpc.target", "understudy.priority.from", "understudy.priority.to", "understudy.priority.reason"},
	Default:     true,
})

var failovers tally.Bound

type journal struct {
	lastChange time.Time
	reported   reportedPriority

	leftHighest   time.Time
	unusableSince time.Time // when the last usable priority failed, or zero
}

func (p *policy) recordFailover(from, to string, state connectivity.State) (reason string) {
	// The first choice doesn't count, and neither does gaining or losing all priorities in a new
	// configuration.
	if from == "" || to == "" {
		return ""
	}
	target := p.Options.Target.String()
	counted := failovers.Limit(target, tally.Labels{p.title(from), p.title(to)})
	failoversMetric.Record(p.ClientConn.MetricsRecorder(), 1, target, counted[0], counted[1], p.metricReason(from, to))
	now := time.Now()
	oldIndex, newIndex := slices.Index(p.config.Priorities, from), slices.Index(p.config.Priorities, to)
	_, unhealthySince := p.stateTimes(from)
	cause := p.problem(from)
	kind, duration := "failover", now.Sub(unhealthySince)
	switch {
	case oldIndex < 0, newIndex < oldIndex && (state != connectivity.Ready || p.journal.leftHighest.IsZero()):
		kind, duration = "move", 0
	case newIndex < oldIndex:
		kind, duration = "failback", now.Sub(p.journal.leftHighest)
	}
	if newIndex < oldIndex && cause == "" {
		if cause = p.failbackReason(to); p.journal.leftHighest.IsZero() {
			cause = "an update has put " + p.title(to) + " above it"
		}
	} else if cause == "" {
		fromState, _ := p.core.State(from)
		cause = fmt.Sprintf("%s is %v", p.title(from), fromState)
	}
	p.log(kind, fmt.Sprintf("%s from %s to %s, which is %v, after %s: %s", kind, p.title(from), p.title(to), state, printable.Duration(duration), cause),
		slog.String("from", p.title(from)), slog.String("to", p.title(to)), slog.String("state", state.String()), slog.Duration("after", duration), slog.String("reason", cause))
	return cause
}

func (p *policy) mayBeBackSoon(child string) bool {
	// With overflow, a child usually comes back within a second of a GOAWAY. Calls go to the next
	// priority at once, but it's only worth logging if it lasts.
	c := p.shares.children[child]
	state, exists := p.core.State(child)
	if c == nil || !exists || c.Ready || !c.WasReady || state == core.TransientFailure {
		return false
	}
	left := time.Second - (time.Since(p.shares.start) - c.LostAt)
	if left > 0 {
		p.children[child].StartTimer(lostTimer, left, p.Publish)
	}
	return left > 0
}

func (p *policy) updateLeftHighest() {
	switch isLower := slices.Index(p.config.Priorities, p.inUse) > 0; {
	case !isLower:
		p.journal.leftHighest = time.Time{}
	case p.journal.leftHighest.IsZero():
		p.journal.leftHighest = time.Now()
	}
}

func (p *policy) metricReason(from, to string) string {
	oldIndex, newIndex := slices.Index(p.config.Priorities, from), slices.Index(p.config.Priorities, to)
	state, _ := p.core.State(from)
	switch {
	case oldIndex < 0:
		return "not_configured"
	case newIndex < oldIndex && (p.published.ConnectivityState == connectivity.Ready || p.problem(from) == ""):
		return "recovered"
	case state == core.TransientFailure && p.timedOut(from):
		return "timeout"
	case p.isBypassed(from):
		return "lost"
	}
	return "failed"
}

func (p *policy) logAvailability() {
	unusableSince := &p.journal.unusableSince
	failed := p.published.ConnectivityState == connectivity.TransientFailure && p.chosen != ""
	switch {
	case failed && unusableSince.IsZero():
		*unusableSince = time.Now()
		text := fmt.Sprint(shell.FailureOf(p.published.Picker))
		p.log(noUsablePriority, text, slog.String("reason", strings.TrimPrefix(text, noUsablePriority+": ")))
	case !failed && !unusableSince.IsZero() && usable(states[p.published.ConnectivityState]):
		duration := time.Since(*unusableSince)
		*unusableSince = time.Time{}
		p.log("recovered", fmt.Sprintf("%s takes calls again, after %s without a usable priority", p.title(p.chosen), printable.Duration(duration)),
			slog.String("to", p.title(p.chosen)), slog.Duration("after", duration))
	}
}

func (p *policy) log(message, text string, attrs ...slog.Attr) {
	p.Warn("priority", message, text, attrs...)
}

const reportPause = 10 * time.Second

// reports remembers what we've logged about a share. It's only used in events.
type reports struct {
	depth share.Depth
	at    [share.Tripped + 1]time.Time
}

func (p *policy) logShare(name string) {
	// We don't log a share that moves up and down by one step. We also skip a priority that's
	// coming back, since its failback has been logged.
	c := p.shares.children[name]
	now, last := c.current().Depth, &c.reports
	switch {
	case now == last.depth:
		return
	case now != share.Whole && now < last.depth:
		last.depth = min(last.depth, now+1)
		return
	}
	if left := reportPause - time.Since(last.at[now]); left > 0 {
		p.children[name].StartTimer(shareTimer, left, p.settle)
		return
	}
	last.depth, last.at[now] = now, time.Now()
	s, text := c.read(), p.title(name)+" takes all of its calls again"
	if now != share.Whole && s.Cause == share.Returning {
		return // we've logged the failback
	}
	attrs := []slog.Attr{slog.String("priority", p.title(name)), slog.Float64("share", math.Round(1000*s.Fraction)/1000)}
	if now != share.Whole {
		text = fmt.Sprint(p.title(name), " ", s)
		attrs = append(attrs, slog.String("reason", s.Cause.String()))
	}
	p.log("share", text, attrs...)
}

type shed struct {
	begun atomic.Bool
	calls atomic.Int64

	since time.Time // zero while no calls are refused; only used in events, like total
	total int64
}

func (p *policy) logShed() {
	s, calls := &p.shares.shed, p.shares.shed.calls.Swap(0)
	switch {
	case s.since.IsZero():
		s.since = time.Now()
		p.log("shed", "calls are refused: every priority is full")
	case calls == 0:
		after := time.Since(s.since) - reportPause
		p.log("shed ended", fmt.Sprintf("no calls are refused any longer: %d were, in %s", s.total, printable.Duration(after)), slog.Int64("calls", s.total), slog.Duration("after", after))
		s.since, s.total = time.Time{}, 0
		s.begun.Store(false)
		return
	}
	s.total += calls
	time.AfterFunc(reportPause, func() { p.Event(p.logShed) })
}

// outage is a time during which calls fail at every priority, even though everything they could go
// to is connected.
type outage struct {
	since, until time.Time // since is zero if there's none now, and until is zero if there hasn't been one
	logged       bool
}

func (p *policy) logOutage(ready []string) {
	// If the last outage was only just over, we don't log another one unless it lasts.
	o := &p.shares.outage
	all, succeeded := p.failEverywhere(ready)
	switch {
	case all && o.since.IsZero():
		o.since = time.Now()
	case o.since.IsZero():
		return
	case !all && succeeded:
		if o.logged {
			after := time.Since(o.since)
			p.log("calls succeed", fmt.Sprintf("calls no longer fail at every priority, after %s", printable.Duration(after)), slog.Duration("after", after))
		}
		*o = outage{until: time.Now()}
		return
	case len(ready) == 0 || !p.shares.offers: // already logged as "no priority can take calls"
		*o = outage{until: time.Now()}
		return
	}
	if left := reportPause - o.since.Sub(o.until) - time.Since(o.since); all && !o.logged && left <= 0 {
		o.logged = true
		reason := p.reasonsOf(ready)
		p.log("calls fail at every priority", "calls fail at every priority: "+reason, slog.String("reason", reason))
	}
	p.children[ready[len(ready)-1]].StartTimer(outageTimer, time.Second, p.settle) // we only get an event for a good answer if the share is 0, so look again later
}

// failEverywhere returns false for all as long as a priority that's connecting might help.
// succeeded means that at least one call has succeeded since the outage began.
func (p *policy) failEverywhere(ready []string) (all, succeeded bool) {
	all = p.shares.offers && !p.shares.inner && len(ready) > 0
	for _, name := range p.config.Priorities {
		all = all && p.children[name] != nil && !p.core.Awaited(name)
	}
	for n, name := range ready {
		s, goodAt := p.shares.children[name].look()
		all = all && (s.Depth == share.Tripped || n == len(ready)-1 && s.Fails)
		succeeded = succeeded || p.shares.start.Add(goodAt).After(p.shares.outage.since)
	}
	return all, succeeded
}

func (p *policy) reasonsOf(ready []string) string {
	var reasons []string
	for _, name := range ready[:len(ready)-1] {
		reasons = append(reasons, fmt.Sprint(p.title(name), " ", p.shares.children[name].read()))
	}
	reasons = append(reasons, p.title(ready[len(ready)-1])+" has no good answers")
	return strings.Join(reasons, "; ")
}

func (p *policy) problem(child string) string {
	state, exists := p.core.State(child)
	switch {
	case !slices.Contains(p.config.Priorities, child):
		return p.title(child) + " is no longer configured"
	case !exists:
		return p.title(child) + " is no longer needed"
	case state == core.TransientFailure:
		return p.reasonOf(child).String()
	case p.isBypassed(child) && p.statuses[child].updated:
		return "an update has given " + p.title(child) + " other endpoints, which connect"
	case p.isBypassed(child):
		return p.title(child) + " has lost its connections"
	}
	return ""
}

func (p *policy) failbackReason(child string) string {
	text := p.title(child) + " can take calls"
	n := p.statuses[child]
	switch {
	case n == nil || n.state == core.Connecting:
		return p.title(child) + " is given time to connect"
	case !usable(n.state):
		return fmt.Sprintf("%s is %v", p.title(child), n.state)
	case n.wasHealthy:
		text += " again"
	}
	return text
}
