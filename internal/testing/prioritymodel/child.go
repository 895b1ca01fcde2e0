package prioritymodel

import (
	"fmt"
	"time"
)

// never is a time that is never reached.
const never = time.Duration(1<<63 - 1)

// child is an existing child.
type child struct {
	m        *Model
	name     string
	number   int // position in the order of creation of all children
	policies Policies

	reported  Report // the last report
	refusal   string // the error of its last update where that counts, else ""
	lacking   bool   // the child is below its mark
	reports   int    // number of reports
	revision  int    // number of changes of its published state
	lastError string

	failoverAt  time.Duration // when the failover timer fires
	given       time.Duration // the failover timer's duration
	expired     bool          // the failover timer fired, and since then the child has reported only CONNECTING
	mayStart    bool          // READY or IDLE more recently than TRANSIENT_FAILURE
	destroyAt   time.Duration // when the deactivation timer fires
	removed     bool          // deactivated because it is not configured
	readyLongAt time.Duration // when the child will have been READY for the failback delay
	woken       bool
	wasPoor     bool // poor at its last READY report or while it connected since then, and has not failed since
	lastWell    int  // the number of the last report up to which the child was good or small

	readySinceFailure bool // READY more recently than TRANSIENT_FAILURE

	early    bool          // created while another child could take the calls
	late     bool          // does not take calls although neither option is set
	waits    bool          // waits to take over
	failures int           // failures since the child was last steady
	steadyAt time.Duration // when the child will have been in use long enough to be steady
	lateAt   time.Duration // when the other groups of its priority are started

	failoverBefore time.Duration // failoverAt when the child was deactivated: p-reactivated
	ignored        bool          // re-resolution requests are ignored, as of the last update
	forgotten      bool          // ignored is obsolete because of an update during its deactivation
}

// CreateChild follows the pseudo-code. "The timer will be started when the child is first created."
func (m *Model) CreateChild(name string) *child {
	m.created++
	c := &child{
		m: m, name: name, number: m.created, reported: unreported,
		failoverAt: m.now + m.config.FailoverTimeout, given: m.config.FailoverTimeout, destroyAt: never, steadyAt: never,
		lateAt: never,
	}
	c.hurry()
	return c
}

// connectivityState is connectivity_state() in the pseudo-code. "If the timer fires without being
// cancelled, the child will be treated as if it reported TRANSIENT_FAILURE."
func (c *child) connectivityState() string {
	if c.expired || c.refusal != "" {
		return TransientFailure
	}
	return c.reported.State
}

// FailoverTimerPending follows the pseudo-code.
func (c *child) FailoverTimerPending() bool { return c.failoverAt != never && c.refusal == "" }

// picker returns the child's published report.
func (c *child) picker() Report {
	switch {
	case c.refusal != "":
		return fails(c.refusal)
	case !c.expired:
		return c.reported
	case c.lastError == "":
		return fails(fmt.Sprintf("priority: child %q did not connect within %v; it has reported no error", c.name, c.given))
	}
	return fails(fmt.Sprintf("priority: child %q did not connect within %v; its last error: %s", c.name, c.given, c.lastError))
}

// track implements "Child Connectivity State Tracking".
func (c *child) track(r Report) {
	now := c.m.now
	c.m.countWell()
	switch {
	case r.State == TransientFailure:
		c.wasPoor, c.readySinceFailure = false, false
	case r.State == Ready:
		c.wasPoor, c.readySinceFailure = false, true
		c.m.noCandidate(c.name)
	case c.ready():
		c.wasPoor = c.poor()
	}
	// A child is also poor if it is emptied while it connects, because results of calls may arrive
	// after their connections have ended.
	c.wasPoor = c.wasPoor || c.readySinceFailure && r.State == Connecting && r.Condition != ""
	if !c.expired || c.refusal != "" || r.State != Connecting {
		c.revision++
	}
	c.reports++
	good := c.good()
	// "It will also be started if the child reports CONNECTING and it has previously
	// reported READY or IDLE more recently than TRANSIENT_FAILURE."
	if r.State == Connecting && c.reported.State != Connecting && c.mayStart {
		c.given = c.m.config.FailoverTimeout
		c.failoverAt = now + c.given
	}
	// "The timer will be cancelled when the child reports its state as READY, IDLE, or
	// TRANSIENT_FAILURE."
	if r.State != Connecting {
		c.failoverAt, c.expired, c.mayStart = never, false, r.State != TransientFailure
	}
	if r.State == TransientFailure {
		c.lastError = r.Err
	}
	c.reported, c.refusal, c.woken = r, "", false
	c.hurry()
	c.mark()
	c.rate(good)
}

// refuse handles an error of the child's update: row P13.
func (c *child) refuse(err string) {
	c.lastError = fmt.Sprintf("priority: child %q refused its update: %s", c.name, err)
	switch {
	case !c.m.Rows["p-refused"] && (c.reported.State == Ready || c.reported.State == Idle):
	case c.m.Rows["p-refused-forgotten"]:
		c.handle(fails(c.lastError))
	default:
		c.refusal = c.lastError
		c.revision++
		c.m.choose()
	}
}

// handle handles a report of the child.
func (c *child) handle(r Report) {
	if c.deactivated() && c.m.Rows["p-reactivated"] {
		return
	}
	c.track(r)
	c.m.choose()
}

// expire handles the end of the failover timer.
func (c *child) expire() {
	c.failoverAt = never
	if c.m.Rows["p-timeout"] {
		return
	}
	c.expired, c.mayStart, c.wasPoor, c.readySinceFailure = true, false, false, false
	if c.refusal == "" {
		c.revision++
	}
}

func (c *child) exitIdle() {
	c.policies.Latest().ExitIdles++
	c.m.log("exit-idle", c.name)
}

func (c *child) destroy() {
	c.policies.Close()
	delete(c.m.children, c.name)
	c.m.log("destroy", c.name)
}

// countWell counts a report and records which children were good or small at that time.
func (m *Model) countWell() {
	m.counted++
	for _, c := range m.children {
		if c.good() || c.small() {
			c.lastWell = m.counted
		}
	}
}
