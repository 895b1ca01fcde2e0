package priority

import (
	"fmt"
	"time"

	core "github.com/understudy-lb/understudy/internal/core/priority"
	"github.com/understudy-lb/understudy/internal/live"
)

// noted is what the policy keeps of a child for people.
type noted struct {
	state core.State // that it is taken to be in
	since time.Time  // when state became so
	well  bool       // whether it can be given calls, and is not poor
	lost  time.Time  // when it was last well; when it was made, where it never was
	again bool       // it was well, and then was not
	why   string     // why it failed, until it is READY and not poor; kept for a page alone

	delayed time.Duration // that it waited to take over from a lower one, 0 for not at all
}

// note notes in what state a child is, after an event of it. It is not called between
// the core's word of an update and the end of that, when an error from the last update
// is forgotten and that from this one is not known yet.
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

// whyNot returns why a child does not work as it should, was where nothing is new.
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

// delay notes how long a child waits to take over from a lower one.
func (p *policy) delay(child string, d time.Duration) {
	if n := p.noted[child]; n != nil {
		n.delayed = d
	}
}

// usable returns whether a child in the state is given calls.
func usable(s core.State) bool { return s == core.Ready || s == core.Idle }

// since returns when the child's state became what it is, and when it was lost.
func (p *policy) since(child string) (since, lost time.Time) {
	if n := p.noted[child]; n != nil {
		return n.since, n.lost
	}
	now := time.Now()
	return now, now
}
