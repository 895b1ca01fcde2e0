package priority

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"google.golang.org/grpc/connectivity"
	estats "google.golang.org/grpc/experimental/stats"

	core "github.com/understudy-lb/understudy/internal/core/priority"
	"github.com/understudy-lb/understudy/internal/printable"
	"github.com/understudy-lb/understudy/internal/serial"
	"github.com/understudy-lb/understudy/internal/shell"
	"github.com/understudy-lb/understudy/internal/stateattr"
	"github.com/understudy-lb/understudy/internal/tally"
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
	changed time.Time // when the child in use last changed
	told    told

	left time.Time // when calls left the highest priority; zero while it is in use
	none time.Time // time at which no priority was usable any longer; zero while one is usable

	// records passes log records to the application's logger on another goroutine, because the
	// application's handler may make a call on this channel.
	records serial.Serializer
}

// recordFailover logs and counts a change of the child in use, and returns the reason. It ignores
// the first choice of a child, and changes from or to a configuration without priorities.
func (p *policy) recordFailover(from, to string, state connectivity.State) (reason string) {
	if from == "" || to == "" {
		return ""
	}
	target := p.Options.Target.String()
	counted := failovers.Of(target, tally.Labels{p.title(from), p.title(to)})
	failoversMetric.Record(p.ClientConn.MetricsRecorder(), 1, target, counted[0], counted[1], p.kindOf(from, to))
	now := time.Now()
	was, is := slices.Index(p.config.Priorities, from), slices.Index(p.config.Priorities, to)
	_, lost := p.since(from)
	why := p.why(from)
	what, took := "failover", now.Sub(lost)
	switch {
	case was < 0, is < was && why == "" && !p.good(to, state):
		what, took = "move", 0
	case is < was && !p.good(to, state):
		what = "move" // not a failback, because the higher priority is used only as a last resort
	case is < was:
		what, took = "failback", 0
		if left := p.journal.left; !left.IsZero() { // zero if calls never left it, because an update added priorities above the one in use
			took = now.Sub(left)
		}
	}
	if is < was && why == "" {
		why = p.whyBack(to)
	} else if why == "" {
		is, _ := p.core.State(from)
		why = fmt.Sprintf("%s is %v", p.title(from), is)
	}
	p.delay(to, 0)
	p.tell(what, fmt.Sprintf("%s from %s to %s, which is %v, after %s: %s", what, p.title(from), p.title(to), state, printable.Duration(took), why),
		slog.String("from", p.title(from)), slog.String("to", p.title(to)), slog.String("state", state.String()), slog.Duration("after", took), slog.String("reason", why))
	return why
}

func (p *policy) good(child string, state connectivity.State) bool {
	return state == connectivity.Ready && p.poor(child) == ""
}

// noteLeft records when calls left the highest priority. The cause is a failover, or an update that
// added priorities above the one in use.
func (p *policy) noteLeft() {
	switch left := slices.Index(p.config.Priorities, p.inUse) > 0; {
	case !left:
		p.journal.left = time.Time{}
	case p.journal.left.IsZero():
		p.journal.left = time.Now()
	}
}

// kindOf returns the value of the metric label that gives the kind of change: why another child is
// in use.
func (p *policy) kindOf(from, to string) string {
	was, is := slices.Index(p.config.Priorities, from), slices.Index(p.config.Priorities, to)
	state, _ := p.core.State(from)
	switch {
	case was < 0:
		return "not_configured"
	case is < was && (p.good(to, p.published.ConnectivityState) || p.why(from) == ""):
		return "recovered"
	case p.poor(from) != "":
		return "poor"
	case state == core.TransientFailure && p.timedOut(from):
		return "timeout"
	case p.passed(from):
		return "lost"
	}
	return "failed"
}

// recordNone logs that no priority can take calls any longer, or that one can again.
func (p *policy) recordNone() {
	none := &p.journal.none
	failed := p.published.ConnectivityState == connectivity.TransientFailure && p.chosen != ""
	switch {
	case failed && none.IsZero():
		*none = time.Now()
		reason := fmt.Sprint(shell.FailureOf(p.published.Picker))
		p.tell(nothingLeft, reason, slog.String("reason", reason))
	case !failed && !none.IsZero() && usable(states[p.published.ConnectivityState]):
		took := time.Since(*none)
		*none = time.Time{}
		p.tell("recovered", fmt.Sprintf("%s takes calls again, after %s without any", p.title(p.chosen), printable.Duration(took)),
			slog.String("to", p.title(p.chosen)), slog.Duration("after", took))
	}
}

func (p *policy) tell(what, line string, attrs ...slog.Attr) {
	target := printable.Line(p.Options.Target.String(), longestReason)
	which := target
	if id := p.Options.ChannelzParent; id != nil { // the channelz number distinguishes channels to the same target
		which = fmt.Sprintf("%s [%v]", target, id)
		attrs = append(attrs, slog.String("channel", fmt.Sprint(id)))
	}
	shell.Logger.Warningf("priority: %s: %s", which, line)
	p.Note(line)
	logger := stateattr.ChannelOf(p.state).Logger
	if logger == nil {
		return
	}
	record := slog.NewRecord(time.Now(), slog.LevelWarn, what, 0)
	record.AddAttrs(slog.String("target", target))
	record.AddAttrs(attrs...)
	p.journal.records.Enqueue(func() {
		if handler, ctx := logger.Handler(), context.Background(); handler.Enabled(ctx, record.Level) {
			_ = handler.Handle(ctx, record)
		}
	})
}

func (p *policy) why(child string) string {
	state, exists := p.core.State(child)
	switch {
	case !slices.Contains(p.config.Priorities, child):
		return p.title(child) + " is not configured any more"
	case !exists:
		return p.title(child) + " is not wanted any more"
	case state == core.TransientFailure:
		return p.reasonOf(child).String()
	case p.passed(child):
		return p.title(child) + " has lost its connections"
	}
	if poor := p.poor(child); poor != "" {
		return p.title(child) + ": " + poor
	}
	return ""
}

// whyBack returns the reason why calls move to a higher child although the lower one still works.
func (p *policy) whyBack(child string) string {
	text := p.title(child) + " can take calls"
	n := p.noted[child]
	switch {
	case n == nil || n.state == core.Connecting:
		return p.title(child) + " is given time to connect"
	case !n.well:
		return fmt.Sprintf("%s is %v", p.title(child), n.state)
	case n.again:
		text += " again"
	}
	if n.delayed > 0 {
		text += ", and the failback delay of " + printable.Duration(n.delayed) + " is over"
	}
	return text
}
