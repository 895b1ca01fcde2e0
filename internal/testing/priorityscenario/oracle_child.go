package priorityscenario

import (
	"fmt"
	"strings"
	"time"

	core "github.com/understudy-lb/understudy/internal/core/priority"
)

// oracleChild is a child of an Oracle.
type oracleChild struct {
	o      *Oracle
	name   string
	number int // of all children

	reported core.State
	reports  int    // how many there were
	line     string // that publishes the last one
	last     string // the last error

	failoverAt   time.Duration // when the failover timer fires
	given        time.Duration
	expired      bool
	mayStart     bool // READY or IDLE more recently than TRANSIENT_FAILURE
	destroyAt    time.Duration
	removed      bool
	readyLongAt  time.Duration // when it has been READY for the failback delay
	woken        bool
	created      bool
	wasDestroyed bool
}

func (o *Oracle) createChild(name string) *oracleChild {
	o.created++
	return &oracleChild{
		o: o, name: name, number: o.created, reported: core.Connecting, line: "publish CONNECTING",
		failoverAt: o.now + o.config.FailoverTimeout, given: o.config.FailoverTimeout, destroyAt: never,
	}
}

func (c *oracleChild) connectivityState() core.State {
	if c.expired {
		return core.TransientFailure
	}
	return c.reported
}

// FailoverTimerPending is the pseudo-code's.
func (c *oracleChild) FailoverTimerPending() bool { return c.failoverAt != never }

// MaybeReactivate is the pseudo-code's.
func (c *oracleChild) MaybeReactivate() { c.destroyAt = never }

// Deactivate is the pseudo-code's.
func (c *oracleChild) Deactivate(retention time.Duration) {
	if c.destroyAt != never {
		return
	}
	c.destroyAt = c.o.now + retention
	if retention == 0 {
		c.destroy()
	}
}

// Remove deactivates a child that is not configured any more.
func (c *oracleChild) Remove() {
	retention := c.o.config.RemovedChildRetention
	if !c.removed && (retention < c.o.config.ChildRetention || retention == 0) {
		c.destroyAt = never
	}
	if !c.removed || c.destroyAt == never {
		c.removed = true
		c.Deactivate(retention)
	}
}

func (c *oracleChild) destroy() {
	if !c.wasDestroyed {
		c.wasDestroyed = true
		delete(c.o.children, c.name)
		c.o.write("destroy %s", c.name)
	}
}

// picker is the line that publishes the child.
func (c *oracleChild) picker() string {
	if !c.expired {
		return c.line
	}
	last := "it has reported no error"
	if c.last != "" {
		last = "its last error: " + c.last
	}
	return fmt.Sprintf("publish TRANSIENT_FAILURE: priority: child %q did not connect within %v; %s", c.name, c.given, last)
}

// Update is the pseudo-code's, with what the child does from inside.
func (c *oracleChild) Update() {
	verb := "update"
	if !c.created {
		c.created, verb = true, "create"
	}
	var endpoints []string
	for _, e := range c.o.update.Endpoints {
		if len(e.Path) > 0 && e.Path[0] == c.name {
			endpoints = append(endpoints, fmt.Sprintf("%s%v", e.Address, e.Path[1:]))
		}
	}
	c.o.write("%s %s %s", verb, c.name, strings.Join(endpoints, " "))
	for _, r := range c.o.script[c.name] {
		if r.Err == nil {
			c.o.event(func() { c.report(r.Report.State, r.Report.Line(c.name), r.Report.Err().Error()) })
			continue
		}
		text := fmt.Sprintf("priority: child %q rejected its update: %v", c.name, r.Err)
		c.o.errors = append(c.o.errors, text)
		c.o.event(func() {
			c.last = text
			if c.reported != core.Ready && c.reported != core.Idle {
				c.report(core.TransientFailure, "publish TRANSIENT_FAILURE: "+text, text)
			}
		})
		return
	}
}

func (c *oracleChild) report(state core.State, line, err string) {
	if c.wasDestroyed {
		return
	}
	if state == core.Ready && c.reported != core.Ready {
		c.readyLongAt = c.o.now + c.o.config.FailbackDelay
	}
	if state == core.Connecting && c.reported != core.Connecting && c.mayStart {
		c.given = c.o.config.FailoverTimeout
		c.failoverAt = c.o.now + c.given
	}
	if state == core.TransientFailure {
		c.mayStart, c.last = false, err
	}
	if state == core.Ready || state == core.Idle {
		c.mayStart = true
	}
	if state != core.Connecting {
		c.expired, c.failoverAt = false, never
	}
	c.reported, c.line, c.woken = state, line, false
	if !c.expired {
		c.reports++
	}
	c.o.choose()
}

// due returns when something becomes of the child by itself.
func (c *oracleChild) due() time.Duration {
	due := min(c.failoverAt, c.destroyAt)
	if c.reported == core.Ready && c.readyLongAt > c.o.now {
		due = min(due, c.readyLongAt)
	}
	return due
}

func (c *oracleChild) timePasses() {
	switch c.o.now {
	case c.failoverAt:
		c.failoverAt, c.expired, c.mayStart = never, true, false
	case c.destroyAt:
		c.destroy()
		return
	}
	c.o.choose()
}
