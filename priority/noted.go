package priority

import (
	"fmt"
	"time"

	core "github.com/understudy-lb/understudy/internal/core/priority"
	"github.com/understudy-lb/understudy/internal/live"
)

// noted is the state of a child for logs and pages.
type noted struct {
	state core.State
	since time.Time
	well  bool      // the child can take calls and is not poor
	lost  time.Time // time when well ended, or creation time if the child was never well
	again bool      // the child was well and then was not
	why   string    // reason of the last failure, until the child is READY and not poor; only for the debug pages

	delayed time.Duration // duration of the child's failback delay; 0 if it had none
}

// note records the state of a child after an event. It must not be called between BeginUpdate and
// the end of the child's update, when the child's error is not known yet.
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

// whyNot returns the problem of a child. It returns was if the child is recovering.
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

// since returns the time when the child's state last changed, and the time when the child was lost.
func (p *policy) since(child string) (since, lost time.Time) {
	if n := p.noted[child]; n != nil {
		return n.since, n.lost
	}
	now := time.Now()
	return now, now
}
