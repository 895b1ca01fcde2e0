package priority

import (
	"fmt"
	"time"

	core "github.com/understudy-lb/understudy/internal/core/priority"
	"github.com/understudy-lb/understudy/internal/lb/live"
)

type childStatus struct {
	state          core.State
	since          time.Time
	unhealthySince time.Time // when it was last READY or IDLE, or else when it was created
	wasHealthy     bool      // it has been READY or IDLE before and then wasn't, so the next failback is "again"
	updated        bool      // its connections were ended by an update
	lastFailure    string    // shown on debug pages until the child is READY
}

// updateStatus must be called after the child's update, which may return an error, if the policy
// itself is being updated.
func (p *policy) updateStatus(child string) {
	state, exists := p.core.State(child)
	status := p.statuses[child]
	now := time.Now()
	if !exists {
		delete(p.statuses, child)
		return
	}
	if status == nil {
		p.statuses[child] = &childStatus{state: state, since: now, unhealthySince: now}
		return
	}
	if usable(status.state) && !usable(state) {
		status.unhealthySince, status.wasHealthy, status.updated = now, true, p.Updating()
	}
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
