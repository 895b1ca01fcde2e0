package priorityscenario

import (
	"fmt"
	"slices"
	"strings"
	"time"

	core "github.com/understudy-lb/understudy/internal/core/priority"
)

// never is a time that does not come.
const never = time.Duration(1<<63 - 1)

// Oracle is a Target that follows A56's pseudo-code word for word, with a clock of
// its own: timers are points in time. It has what the decisions add, and differs
// from the pseudo-code where it says nothing twice: what is published already is
// not published again, but at the end of an update.
type Oracle struct {
	now             time.Duration
	update          Update
	config          core.Config
	children        map[string]*oracleChild
	currentPriority int // -1: None
	updating        bool
	closed          bool

	queue  []func()
	busy   bool
	script map[string][]Reaction
	errors []string

	created   int    // how many children there were
	published string // which report of which child was published last
	force     bool
	log       []string
}

// NewOracle returns an Oracle that has had no update.
func NewOracle() *Oracle {
	return &Oracle{children: map[string]*oracleChild{}, currentPriority: -1}
}

// SetCurrentPriority is the pseudo-code's.
func (o *Oracle) SetCurrentPriority(priority int, deactivateLowerPriorities bool) {
	o.currentPriority = priority
	if deactivateLowerPriorities {
		for p := priority + 1; p < len(o.config.Priorities); p++ {
			childName := o.config.Priorities[p]
			if child, ok := o.children[childName]; ok {
				child.Deactivate(o.config.ChildRetention)
			}
		}
	}
	child := o.children[o.config.Priorities[priority]]
	o.updateState(fmt.Sprintf("%d %d %v", child.number, child.reports, child.expired), child.picker())
}

// ChoosePriority is the pseudo-code's.
func (o *Oracle) ChoosePriority() {
	if len(o.config.Priorities) == 0 {
		o.updateState("empty", "publish TRANSIENT_FAILURE: priority policy has empty priority list")
		return
	}
	before := o.currentPriority
	o.currentPriority = -1
	for priority := range o.config.Priorities {
		childName := o.config.Priorities[priority]
		child, ok := o.children[childName]
		if !ok {
			child = o.createChild(childName)
			o.children[childName] = child
			child.Update()
		} else {
			child.MaybeReactivate()
		}
		if o.delayed(child, priority, before) {
			continue
		}
		if child.connectivityState() == core.Ready || child.connectivityState() == core.Idle {
			o.SetCurrentPriority(priority, true)
			return
		}
		if child.FailoverTimerPending() {
			o.SetCurrentPriority(priority, false)
			return
		}
	}
	for priority := range o.config.Priorities {
		childName := o.config.Priorities[priority]
		child := o.children[childName]
		if child.connectivityState() == core.Connecting {
			o.SetCurrentPriority(priority, false)
			return
		}
	}
	o.SetCurrentPriority(len(o.config.Priorities)-1, false)
}

// delayed is the failback delay: a lower priority that is READY stays in use until
// a higher one has been READY for long enough.
func (o *Oracle) delayed(child *oracleChild, priority, before int) bool {
	if o.config.FailbackDelay == 0 || before <= priority {
		return false
	}
	if o.children[o.config.Priorities[before]].connectivityState() != core.Ready {
		return false
	}
	if child.reported == core.Ready {
		return o.now < child.readyLongAt
	}
	if child.reported == core.Idle && !child.woken {
		child.woken = true
		o.write("exit-idle %s", child.name)
	}
	return true
}

func (o *Oracle) updateState(what, line string) {
	if what != o.published || o.force {
		o.write("%s", line)
	}
	o.published, o.force = what, false
}

func (o *Oracle) choose() {
	if !o.updating && !o.closed {
		o.ChoosePriority()
	}
}

func (o *Oracle) write(format string, args ...any) {
	o.log = append(o.log, strings.TrimSpace(fmt.Sprintf(format, args...)))
}

func (o *Oracle) event(f func()) {
	o.queue = append(o.queue, f)
	if o.busy {
		return
	}
	o.busy = true
	for len(o.queue) > 0 {
		next := o.queue[0]
		o.queue = o.queue[1:]
		next()
	}
	o.busy = false
}

func (o *Oracle) names() []string {
	var names []string
	for name := range o.children {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
