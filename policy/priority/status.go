package priority

import (
	"fmt"
	"time"

	core "github.com/understudy-lb/understudy/internal/core/priority"
	"github.com/understudy-lb/understudy/internal/lb/live"
)

// childStatus is the state of a child as logs and debug pages show it.
type childStatus struct {
	state          core.State
	since          time.Time
	healthy        bool      // the child is READY or IDLE
	unhealthySince time.Time // when healthy became false, or when the child was created
	wasHealthy     bool      // healthy has changed from true to false at least once, so each later failback is "again"
	updated        bool      // an update ended its connections
	lastFailure    string    // for debug pages: the last failure, kept until the child is READY
}

// updateStatus records the state of a child. During an update of the policy, it must be called
// after the child's update, because that may return an error.
func (p *policy) updateStatus(child string) {
	state, exists := p.core.State(child)
	status := p.statuses[child]
	now := time.Now()
	if !exists {
		delete(p.statuses, child)
		return
	}
	healthy := usable(state)
	if status == nil {
		p.statuses[child] = &childStatus{state: state, since: now, healthy: healthy, unhealthySince: now}
		return
	}
	if status.healthy && !healthy {
		status.unhealthySince, status.wasHealthy, status.updated = now, true, p.Updating()
	}
	status.healthy = healthy
	if live.Enabled() {
		status.lastFailure = p.currentProblem(child, state, status.lastFailure)
	}
	if status.state != state {
		status.state, status.since = state, now
		if !live.Enabled() {
			return
		}
		text := fmt.Sprintf("%s is %v", p.title(child), state)
		if state == core.TransientFailure {
			text = "failed: " + p.reasonOf(child).String()
		}
		p.Note(text)
	}
}

// currentProblem describes the problem of a child. While the child recovers, it returns previous,
// which is the problem that the child had before.
func (p *policy) currentProblem(child string, state core.State, previous string) string {
	switch state {
	case core.TransientFailure:
		return p.reasonOf(child).text
	case core.Ready:
		return ""
	case core.Idle, core.Connecting:
	}
	return previous
}

func usable(s core.State) bool { return s == core.Ready || s == core.Idle }

func (p *policy) stateTimes(child string) (since, unhealthySince time.Time) {
	if n := p.statuses[child]; n != nil {
		return n.since, n.unhealthySince
	}
	now := time.Now()
	return now, now
}
