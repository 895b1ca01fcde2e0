package prioritymodel

import (
	"fmt"
	"time"
)

const never = time.Duration(1<<63 - 1)

type child struct {
	m        *Model
	name     string
	number   int
	policies Policies

	reported  Report
	refusal   string // the error of its last update, if the child counts as failed because of it
	lacking   bool   // fewer endpoints are READY than MinReady requires
	reports   int
	revision  int // incremented when the child's state or picker changes
	lastError string

	failoverAt  time.Duration // when the failover timer fires
	given       time.Duration // the duration with which the failover timer was last started
	expired     bool          // the failover timer has fired, and the child has reported only CONNECTING since then
	mayStart    bool          // the child has been READY or IDLE more recently than TRANSIENT_FAILURE
	destroyAt   time.Duration
	removed     bool
	readyLongAt time.Duration // when the failback delay ends, if the child stays good until then
	woken       bool
	wasPoor     bool // the child was poor when it was last READY, or became poor while it connected after that, and has not failed since
	lastWell    int  // the value of Model.counted when the child was last good or small

	readySinceFailure bool // the child was READY more recently than TRANSIENT_FAILURE

	early    bool          // the child was created while another one could take the calls
	late     bool          // calls must not move to the child while it connects, even without fastFailover and a failback delay
	waits    bool          // the child is good, but the failback delay has not ended
	failures int           // failures since the child was last in use for long enough
	steadyAt time.Duration // the time after which the child has been in use for so long that its failures no longer count
	lateAt   time.Duration // when the other near groups of its priority start

	failoverBefore time.Duration // row p-reactivated: failoverAt when the child was deactivated
	ignored        bool          // its requests for re-resolution are ignored
	forgotten      bool          // an update came while the child was deactivated, so ignored is out of date
}

// CreateChild is the function of this name in the pseudo-code of gRFC A56. "The timer will be started when the child is
// first created."
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

// connectivityState is connectivity_state() of the pseudo-code. "If the timer fires without being
// cancelled, the child will be treated as if it reported TRANSIENT_FAILURE."
func (c *child) connectivityState() string {
	if c.expired || c.refusal != "" {
		return TransientFailure
	}
	return c.reported.State
}

func (c *child) FailoverTimerPending() bool { return c.failoverAt != never && c.refusal == "" }

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

// track is "Child Connectivity State Tracking" of the gRFC.
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
	// A child also becomes poor if all of its endpoints are ejected while it connects. The results
	// of calls may arrive after their connections have ended.
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
	c.updateLacking()
	c.rate(good)
}

// refuse handles the error of a child's update (row P13 of docs/scenarios.md).
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

func (c *child) handle(r Report) {
	if c.deactivated() && c.m.Rows["p-reactivated"] {
		return
	}
	c.track(r)
	c.m.choose()
}

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

// countWell counts a report, and stores the count in each good or small child.
func (m *Model) countWell() {
	m.counted++
	for _, c := range m.children {
		if c.good() || c.small() {
			c.lastWell = m.counted
		}
	}
}
