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
	"github.com/understudy-lb/understudy/internal/lb/shell"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

const (
	maxReasonLength = 250
	maxReasons      = 8
)

type reason struct {
	title        string
	text         string
	hasError     bool // text is an error from the child, not just the name of its state
	endpoints    int
	failingSince time.Time
}

func (p *policy) reasonOf(child string) reason {
	r := reason{title: p.title(child), endpoints: len(p.groups[child]), hasError: true}
	r.failingSince, _ = p.stateTimes(child)
	c := p.children[child]
	if c == nil {
		return r
	}
	message := stateattr.ChannelOf(p.state).Failures[child]
	switch err := c.LastError(); {
	case message != "":
		// Leave out the duration, as the source's problem may be older than the child's.
		r.text, r.failingSince = brief(errors.New(message)), time.Time{}
	case p.timedOut(child):
		r.text = "did not connect within " + printable.Duration(p.core.FailoverTimeout(child))
		if err != nil && !errors.Is(err, shell.ErrUnknownFailure) && !errors.Is(err, shell.ErrNoEndpoints) {
			r.text += ", last error: " + brief(err)
		}
	case r.endpoints > 0 && errors.Is(err, shell.ErrNoEndpoints):
		r.text, r.failingSince = "an update has given it endpoints, which connect", time.Time{}
	case err == nil || errors.Is(err, shell.ErrUnknownFailure):
		r.text, r.hasError = core.TransientFailure.String(), false
	default:
		r.text = brief(err)
	}
	return r
}

func (p *policy) timedOut(child string) bool {
	c := p.children[child]
	return c != nil && !c.Refused() && c.State().ConnectivityState == connectivity.Connecting
}

func (p *policy) isBypassed(child string) bool {
	if state, exists := p.core.State(child); !exists || state != core.Connecting {
		return false
	}
	_, running := p.children[child].TimerEnds(failoverTimer)
	return running && slices.Index(p.config.Priorities, p.chosen) > slices.Index(p.config.Priorities, child)
}

func (r reason) String() string {
	text := r.title + ": " + r.text
	var details []string
	switch {
	case r.endpoints == 1:
		details = append(details, "1 endpoint")
	case r.endpoints > 1:
		details = append(details, fmt.Sprintf("%d endpoints", r.endpoints))
	}
	if failing := time.Since(r.failingSince); !r.failingSince.IsZero() && failing >= time.Second {
		details = append(details, "failing for "+printable.Duration(failing))
	}
	if len(details) > 0 {
		text += " (" + strings.Join(details, ", ") + ")"
	}
	return text
}

func brief(err error) string { return printable.Line(shell.Brief(err), maxReasonLength) }

type exhaustedPicker struct {
	child   balancer.Picker
	inUse   string
	reasons atomic.Pointer[[]reason] // in order of priority; replaced while calls are picked
}

func (p *policy) updateReasons(e *exhaustedPicker) {
	var reasons []reason
	for _, name := range p.config.Priorities {
		if s, ok := p.core.State(name); ok && s == core.TransientFailure {
			reasons = append(reasons, p.reasonOf(name))
		}
	}
	e.reasons.Store(&reasons)
}

// Pick doesn't touch a status, since that's meant to end the call.
func (e *exhaustedPicker) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	result, err := e.child.Pick(info)
	if err == nil || errors.Is(err, balancer.ErrNoSubConnAvailable) {
		return result, err
	}
	if _, final := status.FromError(err); final {
		return result, err
	}
	return balancer.PickResult{}, e.failure(err)
}

func (e *exhaustedPicker) Failure() error { return e.failure(shell.FailureOf(e.child)) }

func (e *exhaustedPicker) failure(childErr error) error {
	known := *e.reasons.Load()
	var reasons []string
	for i, r := range known {
		if i == maxReasons {
			reasons = append(reasons, fmt.Sprintf("and %d more", len(known)-i))
			break
		}
		if !r.hasError && r.title == e.inUse && childErr != nil {
			r.text = brief(childErr)
		}
		reasons = append(reasons, r.String())
	}
	return errors.New(noUsablePriority + ": " + strings.Join(reasons, "; "))
}

// noUsablePriority is what calls' errors start with, and also the message in the log.
const noUsablePriority = "no priority can take calls"
