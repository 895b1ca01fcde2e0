package prioritymodel

import (
	"fmt"
	"time"
)

// never is the time at which a stopped timer fires.
const never = time.Duration(1<<63 - 1)

// child is a child of the policy, from its creation until it is destroyed.
type child struct {
	m        *Model
	name     string
	number   int // children have numbers in the order of their creation
	policies Policies

	reported  Report
	refusal   string // the error of its last update, if the child counts as failed because of it
	lacking   bool   // fewer of the child's endpoints are READY than MinReady requires
	reports   int
	revision  int // increases when what the child would publish changes
	lastError string

	failoverAt  time.Duration // when the failover timer fires
	given       time.Duration // the duration that the failover timer was last started with
	expired     bool          // the failover timer has fired, and since then the child has reported nothing but CONNECTING
	mayStart    bool          // the child has been READY or IDLE more recently than TRANSIENT_FAILURE
	destroyAt   time.Duration // when the deactivation timer fires
	removed     bool          // deactivated because it is not configured
	readyLongAt time.Duration // when the failback delay ends, if the child stays good until then
	woken       bool
	wasPoor     bool // the child was poor (see the method poor) when it was last READY, or became poor while it connected after that; and it has not failed since
	lastWell    int  // the value of Model.counted when the child was last good or small

	readySinceFailure bool // the child was READY more recently than TRANSIENT_FAILURE

	early    bool          // the child was created while another one could take the calls
	late     bool          // calls must not move to the child while it connects, even without fastFailover and a failback delay
	waits    bool          // the child is good, but the failback delay has not ended
	failures int           // failures since the child was last in use for long enough
	steadyAt time.Duration // when the child will have been in use for long enough, so that its failures no longer count
	lateAt   time.Duration // when the other near groups of its priority start

	failoverBefore time.Duration // row p-reactivated: failoverAt when the child was deactivated
	ignored        bool          // whether its requests for re-resolution are ignored, by its last update
	forgotten      bool          // ignored is out of date, because an update came while the child was deactivated
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

// FailoverTimerPending is the function of the pseudo-code.
func (c *child) FailoverTimerPending() bool { return c.failoverAt != never && c.refusal == "" }

// picker returns what the child would publish.
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
	// A child that is emptied while it connects becomes poor, too: the results of calls may arrive
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

// handle applies a child's report and then chooses a priority.
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

// countWell counts a report, and stores the count in each child that is good or small.
func (m *Model) countWell() {
	m.counted++
	for _, c := range m.children {
		if c.good() || c.small() {
			c.lastWell = m.counted
		}
	}
}
