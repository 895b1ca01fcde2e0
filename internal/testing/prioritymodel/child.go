package prioritymodel

import (
	"fmt"
	"time"
)

// never is the time of a timer that is not running.
const never = time.Duration(1<<63 - 1)

// child is a child of the policy, from its creation until it is destroyed.
type child struct {
	m        *Model
	name     string
	number   int // children are numbered in the order of their creation
	policies Policies

	reported  Report // the last report
	refusal   string // the error of its last update, if it makes the child count as failed; else ""
	lacking   bool   // less of the child is READY than MinReady requires
	reports   int    // number of reports
	revision  int    // increases when the state that it would publish changes
	lastError string

	failoverAt  time.Duration // when the failover timer fires
	given       time.Duration // duration for which the failover timer was last started
	expired     bool          // the failover timer has fired, and the child has reported only CONNECTING since
	mayStart    bool          // the child has been READY or IDLE more recently than TRANSIENT_FAILURE
	destroyAt   time.Duration // when the deactivation timer fires
	removed     bool          // deactivated because it is not configured
	readyLongAt time.Duration // when the failback delay ends, if the child stays good
	woken       bool
	wasPoor     bool // the child was poor when it was last READY, or became poor while connecting afterwards, and has not failed since
	lastWell    int  // value of Model.counted when the child was last good or small

	readySinceFailure bool // the child has been READY more recently than TRANSIENT_FAILURE

	early    bool          // the child was created while another one could take the calls
	late     bool          // calls must not move to the child while it connects, even without fastFailover and a failback delay
	waits    bool          // the child is good, but the failback delay has not ended
	failures int           // number of failures since the child last stayed in use for long enough
	steadyAt time.Duration // when the child will have been in use for long enough to forget its failures
	lateAt   time.Duration // when the other near groups of its priority are started

	failoverBefore time.Duration // failoverAt when the child was deactivated, for row p-reactivated
	ignored        bool          // whether its re-resolution requests are ignored, according to its last update
	forgotten      bool          // ignored is out of date, because of an update while the child was deactivated
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
	// A child also becomes poor if it is emptied while it connects: the results of calls may arrive
	// after the connections of these calls have ended.
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

// refuse handles an error that the child's update returned (row P13).
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

// handle applies a report of the child and then chooses a priority.
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

// countWell counts a report. In each child that is good or small, it stores the number of the
// report in lastWell.
func (m *Model) countWell() {
	m.counted++
	for _, c := range m.children {
		if c.good() || c.small() {
			c.lastWell = m.counted
		}
	}
}
