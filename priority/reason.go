package priority

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"

	core "github.com/understudy-lb/understudy/internal/core/priority"
	"github.com/understudy-lb/understudy/internal/printable"
	"github.com/understudy-lb/understudy/internal/shell"
	"github.com/understudy-lb/understudy/internal/stateattr"
)

// How much of a call's error is worth reading.
const (
	longestReason = 250
	mostReasons   = 8
)

// reason says why a child takes no calls.
type reason struct {
	title     string
	text      string
	told      bool      // text is the child's own, and not just its state
	endpoints int       // that it was given
	since     time.Time // when it failed, zero where that is not known
}

// reasonOf returns why a child takes no calls that is taken to be TRANSIENT_FAILURE.
func (p *policy) reasonOf(child string) reason {
	r := reason{title: p.title(child), endpoints: len(p.groups[child]), told: true}
	r.since, _ = p.since(child)
	c := p.children[child]
	if c == nil {
		return r
	}
	why := stateattr.ChannelOf(p.state).Failures[child]
	switch err := c.LastError(); {
	case why != "":
		// The child itself can only say that it has no endpoints. Its time is not the source's.
		r.text, r.since = brief(errors.New(why)), time.Time{}
	case p.timedOut(child):
		r.text = "did not connect within " + printable.Duration(p.core.Given(child))
		if err != nil && !errors.Is(err, shell.ErrUntold) {
			r.text += ", last error: " + brief(err)
		}
	case err == nil || errors.Is(err, shell.ErrUntold):
		r.text, r.told = core.TransientFailure.String(), false
	default:
		r.text = brief(err)
	}
	return r
}

// poor says what is wrong with a child that is READY, "" for nothing.
func (p *policy) poor(child string) string {
	tier, poor := p.core.Poor(child)
	switch {
	case !poor:
		return ""
	case tier.Condition == core.Emptied:
		return "calls to all of its endpoints fail" + p.failures(child)
	case tier.Condition == core.HalfOpen && p.chosen == child:
		return "calls to all of its endpoints failed" + p.failures(child) + ", and no other priority is better"
	case tier.Condition == core.HalfOpen:
		return "calls to all of its endpoints failed" + p.failures(child) + ", and a few of them show whether that is over"
	}
	return fmt.Sprintf("%.3g %% of its weight is READY, want %.3g %%", 100*tier.ReadyPart, 100*p.config.MinReady)
}

// failures says what the calls of a child ended with, as far as that is known.
func (p *policy) failures(child string) string {
	if c := p.children[child]; c != nil {
		if codes := shell.TierOf(c.State().Picker).Failures; codes != "" {
			return " with " + codes
		}
	}
	return ""
}

// timedOut returns whether the child counts as failed because its failover timer fired.
func (p *policy) timedOut(child string) bool {
	c := p.children[child]
	return c != nil && !c.Refused() && c.State().ConnectivityState == connectivity.Connecting
}

// passed returns whether the child is still given time to connect, and is not waited for
// all the same.
func (p *policy) passed(child string) bool {
	if state, exists := p.core.State(child); !exists || state != core.Connecting {
		return false
	}
	_, waits := p.children[child].TimerEnds(failover)
	return waits && slices.Index(p.config.Priorities, p.chosen) > slices.Index(p.config.Priorities, child)
}

// String returns the reason with its title.
func (r reason) String() string {
	text := r.title + ": " + r.text
	var more []string
	switch {
	case r.endpoints == 1:
		more = append(more, "1 endpoint")
	case r.endpoints > 1:
		more = append(more, fmt.Sprintf("%d endpoints", r.endpoints))
	}
	if failing := time.Since(r.since); !r.since.IsZero() && failing >= time.Second {
		more = append(more, "failing for "+printable.Duration(failing))
	}
	if len(more) > 0 {
		text += " (" + strings.Join(more, ", ") + ")"
	}
	return text
}

// brief returns an error as it is shown beside others.
func brief(err error) string { return printable.Line(shell.Brief(err), longestReason) }

// exhausted is the picker where no priority can take calls. It leaves to the child in
// use what that does with a call, and tells of all priorities when it is a failure.
type exhausted struct {
	child balancer.Picker // of the child in use
	inUse string          // its title
	// reasons are in priority order. They are replaced while the picker is in use: those of
	// children that are not in use are published by nobody.
	reasons atomic.Pointer[[]reason]
}

// exhausted returns state, which is TRANSIENT_FAILURE and the child's, with a picker
// whose errors tell of all priorities.
func (p *policy) exhausted(child string, state balancer.State) balancer.State {
	e := &exhausted{child: state.Picker, inUse: p.title(child)}
	p.explain(e)
	state.Picker = e
	return state
}

// explain gives a picker the reasons of now.
func (p *policy) explain(e *exhausted) {
	var reasons []reason
	for _, name := range p.config.Priorities {
		if s, ok := p.core.State(name); ok && s == core.TransientFailure {
			reasons = append(reasons, p.reasonOf(name))
		}
	}
	e.reasons.Store(&reasons)
}

// Pick lets the child's picker pick. Where that fails with a status, it means to end the
// call, and has its way.
func (e *exhausted) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	result, err := e.child.Pick(info)
	if err == nil || errors.Is(err, balancer.ErrNoSubConnAvailable) {
		return result, err
	}
	if _, final := status.FromError(err); final {
		return result, err
	}
	return balancer.PickResult{}, e.failure(err)
}

// Failure returns what a call fails with.
func (e *exhausted) Failure() error { return e.failure(shell.FailureOf(e.child)) }

// failure returns an error that names every priority with its reason. own is the error
// of the child in use, nil where it is not known.
func (e *exhausted) failure(own error) error {
	known := *e.reasons.Load()
	var reasons []string
	for i, r := range known {
		if i == mostReasons {
			reasons = append(reasons, fmt.Sprintf("and %d more", len(known)-i))
			break
		}
		if !r.told && r.title == e.inUse && own != nil {
			r.text = brief(own)
		}
		reasons = append(reasons, r.String())
	}
	return errors.New(nothingLeft + ": " + strings.Join(reasons, "; "))
}

// nothingLeft is what calls fail with, and what the log says.
const nothingLeft = "no priority can take calls"
