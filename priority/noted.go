package priority

import (
	"fmt"
	"time"

	core "github.com/understudy-lb/understudy/internal/core/priority"
	"github.com/understudy-lb/understudy/internal/live"
)

// noted is the state of a child as logs and debug pages show it.
type noted struct {
	state core.State
	since time.Time
	well  bool      // the child can take calls, and core.Poor is false
	lost  time.Time // when the field well became false, or when the child was created
	again bool      // well is false, but was true before
	why   string    // the last failure; kept until the child is READY and not poor; only for debug pages

	delayed time.Duration
}

// note records the state of a child. During an update of the policy, it must be called after the
// child's update, which may return an error.
func (p *policy) note(child string) {
	state, exists := p.core.State(child)
	n := p.noted[child]
	now := time.Now()
	if !exists {
		delete(p.noted, child)
		return
	}
	_, poor := p.core.Poor(child)
	well := usable(state) && !poor
	if n == nil {
		p.noted[child] = &noted{state: state, since: now, well: well, lost: now}
		return
	}
	if n.well && !well {
		n.lost, n.again = now, true
	}
	n.well = well
	if live.On() {
		n.why = p.whyNot(child, state, n.why)
	}
	if n.state != state {
		n.state, n.since = state, now
		if !live.On() {
			return
		}
		text := fmt.Sprintf("%s is %v", p.title(child), state)
		if state == core.TransientFailure {
			text = "failed: " + p.reasonOf(child).String()
		}
		p.Note(text)
	}
}

// whyNot describes the present problem of a child. While the child recovers, this is was, the
// problem from before.
func (p *policy) whyNot(child string, state core.State, was string) string {
	poor := p.poor(child)
	switch {
	case state == core.TransientFailure:
		return p.reasonOf(child).text
	case poor != "":
		return poor
	case state == core.Ready:
		return ""
	}
	return was
}

func (p *policy) delay(child string, d time.Duration) {
	if n := p.noted[child]; n != nil {
		n.delayed = d
	}
}

func usable(s core.State) bool { return s == core.Ready || s == core.Idle }

func (p *policy) since(child string) (since, lost time.Time) {
	if n := p.noted[child]; n != nil {
		return n.since, n.lost
	}
	now := time.Now()
	return now, now
}
