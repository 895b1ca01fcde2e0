package prioritymodel

import (
	"fmt"
	"time"
)

const never = time.Duration(1<<63 - 1)

type child struct {
	model    *Model
	name     string
	number   int
	policies Policies

	reported  Report
	updateErr string // error of the last update; the child counts as failed unless it's ""
	revision  int
	lastError string

	failoverAt      time.Duration
	failoverTimeout time.Duration
	timedOut        bool // the failover timer has fired, and since then the child has only reported CONNECTING
	upSinceFailure  bool // has been READY or IDLE since its last failure
	destroyAt       time.Duration
	removed         bool
	exitIdleCalled  bool
	wasReady        bool

	failoverAtBefore    time.Duration // only for row p-reactivated: failoverAt when the child was deactivated
	ignoresReResolution bool
	ignoresStale        bool // ignoresReResolution is outdated, because an update came while the child was deactivated
}

// CreateChild follows A56's pseudo-code. "The timer will be started when the child is first
// created."
func (m *Model) CreateChild(name string) *child {
	m.created++
	return &child{
		model: m, name: name, number: m.created, reported: initialReport,
		failoverAt: m.now + m.config.FailoverTimeout, failoverTimeout: m.config.FailoverTimeout, destroyAt: never,
	}
}

// connectivityState follows A56's pseudo-code. "If the timer fires without being cancelled, the
// child will be treated as if it reported TRANSIENT_FAILURE."
func (c *child) connectivityState() string {
	if c.timedOut || c.updateErr != "" {
		return TransientFailure
	}
	return c.reported.State
}

func (c *child) FailoverTimerPending() bool { return c.failoverAt != never && c.updateErr == "" }

func (c *child) picker() Report {
	switch {
	case c.updateErr != "":
		return failedReport(c.updateErr)
	case !c.timedOut:
		return c.reported
	case c.lastError == "":
		return failedReport(fmt.Sprintf("priority: child %q did not connect within %v; it has reported no error", c.name, c.failoverTimeout))
	}
	return failedReport(fmt.Sprintf("priority: child %q did not connect within %v; its last error: %s", c.name, c.failoverTimeout, c.lastError))
}

// track implements A56's section "Child Connectivity State Tracking".
func (c *child) track(r Report) {
	if !c.timedOut || c.updateErr != "" || r.State != Connecting {
		c.revision++
	}
	// "It will also be started if the child reports CONNECTING and it has previously
	// reported READY or IDLE more recently than TRANSIENT_FAILURE."
	if r.State == Connecting && c.reported.State != Connecting && c.upSinceFailure {
		c.failoverTimeout = c.model.config.FailoverTimeout
		c.failoverAt = c.model.now + c.failoverTimeout
	}
	// "The timer will be cancelled when the child reports its state as READY, IDLE, or
	// TRANSIENT_FAILURE."
	if r.State != Connecting {
		c.failoverAt, c.timedOut, c.upSinceFailure = never, false, r.State != TransientFailure
	}
	if r.State == TransientFailure {
		c.lastError = r.Err
	}
	c.wasReady = c.wasReady || r.State == Ready
	c.reported, c.updateErr, c.exitIdleCalled = r, "", false
}

func (c *child) setUpdateError(err string) {
	c.lastError = fmt.Sprintf("priority: child %q refused its update: %s", c.name, err)
	switch {
	case !c.model.Rows["p-refused"] && (c.reported.State == Ready || c.reported.State == Idle):
	case c.model.Rows["p-refused-forgotten"]:
		c.handle(failedReport(c.lastError))
	default:
		c.updateErr = c.lastError
		c.revision++
		c.model.choose()
	}
}

func (c *child) handle(r Report) {
	if c.deactivated() && c.model.Rows["p-reactivated"] {
		return
	}
	c.track(r)
	c.model.choose()
}

func (c *child) expire() {
	c.failoverAt = never
	if c.model.Rows["p-timeout"] {
		return
	}
	c.timedOut, c.upSinceFailure = true, false
	if c.updateErr == "" {
		c.revision++
	}
}

func (c *child) wake() {
	if c.connectivityState() == Idle && !c.exitIdleCalled {
		c.exitIdleCalled = true
		c.exitIdle()
	}
}

func (c *child) exitIdle() {
	c.policies.Latest().ExitIdles++
	c.model.log("exit-idle", c.name)
}

func (c *child) destroy() {
	c.policies.Close()
	delete(c.model.children, c.name)
	c.model.log("destroy", c.name)
}
