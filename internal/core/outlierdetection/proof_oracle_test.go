package outlierdetection_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	core "github.com/understudy-lb/understudy/internal/core/outlierdetection"
)

// proofOracle is a simple implementation of the rules for ReportEmptied in docs/a50.md. Endpoints
// are ejected only after failures in a row.
type proofOracle struct {
	config    core.Config
	order     []string
	endpoints map[string]*modelEndpoint
	now       time.Time
	nextSweep time.Time
	phase     string
	tick      int
}

type modelEndpoint struct {
	connection                        string
	ejected, unproven                 bool
	ejectedAt                         time.Time
	multiplier                        int
	consecutiveFailures, firstFailure int
	epoch                             int // only calls that began after this tick show whether the endpoint has recovered
	lastCallLost                      bool
	ejectedByLoss, connectionLost     bool
	calls                             []*modelCall
	answers, refusals                 int
}

type modelCall struct {
	began             int
	start             time.Time
	deadline          bool
	countedAsAnswer   bool
	ejectedOrUnproven bool
}

func (o *proofOracle) isSound(d *modelEndpoint) bool {
	return !d.ejected && !d.unproven && d.connection != "broken"
}

// updatePhase computes the phase from two sentences of docs/a50.md. The priority is "not emptied
// while an endpoint that is neither ejected nor unproven connects and has not failed". Without a
// connected endpoint, it is emptied only if an endpoint reconnects that was "ejected by calls that
// ended with its connection".
func (o *proofOracle) updatePhase() {
	var sound, doubted, connected, lost, returning int
	for _, d := range o.endpoints {
		if o.isSound(d) {
			sound++
		}
		if d.ejected || d.unproven {
			doubted++
		}
		lostConnection := d.ejected && d.ejectedByLoss && d.connectionLost
		if d.connection == "connecting" && lostConnection {
			returning++
		}
		if d.connection == "connected" {
			connected++
			if lostConnection {
				lost++
			}
		}
	}
	switch {
	case sound > 0 || doubted == 0:
		o.phase = "usable"
	case connected+returning > 0 && o.phase == "usable":
		o.phase = "emptied"
		for _, d := range o.endpoints {
			if d.ejected || d.unproven {
				o.startEpoch(d)
			}
		}
	}
	if o.phase == "emptied" && connected > 0 && lost == connected {
		o.phase = "half-open"
	}
}

func (o *proofOracle) startEpoch(d *modelEndpoint) {
	d.epoch, d.answers, d.refusals = o.tick, 0, 0
}

func (o *proofOracle) begin(name string, deadline bool) {
	o.tick++
	d := o.endpoints[name]
	d.calls = append(d.calls, &modelCall{began: o.tick, start: o.now, deadline: deadline, ejectedOrUnproven: d.ejected || d.unproven})
}

func (o *proofOracle) end(name, how string) {
	o.tick++
	d := o.endpoints[name]
	c := d.calls[0]
	d.calls = d.calls[1:]
	switch how {
	case "ok", "cancelled":
		if c.began > d.firstFailure {
			d.consecutiveFailures = 0
		}
		o.answered(d, c)
	case "failed", "lost":
		if c.ejectedOrUnproven && c.began > d.epoch {
			d.refusals++
		}
		d.lastCallLost = how == "lost"
		if d.consecutiveFailures++; d.consecutiveFailures == 1 {
			d.firstFailure = o.tick
		}
		if d.consecutiveFailures == int(o.config.ConsecutiveFailuresEjection.Failures) {
			d.consecutiveFailures = 0
			if !d.ejected {
				o.eject(d)
			}
		}
	}
	o.updatePhase()
}

func (o *proofOracle) eject(d *modelEndpoint) {
	d.ejected, d.unproven, d.ejectedAt = true, false, o.now
	d.multiplier++
	d.ejectedByLoss, d.connectionLost = d.lastCallLost, d.connection != "connected"
	o.startEpoch(d)
}

func (o *proofOracle) answered(d *modelEndpoint, c *modelCall) {
	if !c.ejectedOrUnproven || c.began <= d.epoch || !d.ejected && !d.unproven {
		return
	}
	d.answers++
	d.unproven = false
}

func (o *proofOracle) connect(name, how string) {
	o.tick++
	d := o.endpoints[name]
	connection := map[string]string{"connect": "connected", "disconnect": "connecting", "refuse": "broken"}[how]
	if d.connection == "broken" && connection == "connecting" {
		return
	}
	if d.connection == "connected" && connection != "connected" && d.ejected {
		d.connectionLost = true // the calls that caused the ejection were on this connection
	}
	if d.connection == "broken" && connection == "connected" && o.phase != "usable" && !d.ejected && !d.unproven {
		d.unproven = true
		o.startEpoch(d)
	}
	d.connection = connection
	o.updatePhase()
}

func (o *proofOracle) advance(d time.Duration) {
	for end := o.now.Add(d); o.now.Before(end); {
		o.now = o.now.Add(time.Second / 2)
		o.tick++
		if o.now.Equal(o.nextSweep) {
			o.timer()
			o.nextSweep = o.now.Add(o.config.Interval)
		}
		for _, name := range o.order {
			for _, c := range o.endpoints[name].calls {
				if !c.deadline && !c.countedAsAnswer && o.now.Sub(c.start) == o.config.Interval {
					c.countedAsAnswer = true
					o.answered(o.endpoints[name], c)
					o.updatePhase()
				}
			}
		}
	}
}

func (o *proofOracle) timer() {
	mayExpire := o.phase == "usable"
	for _, d := range o.endpoints {
		if d.ejected {
			d.consecutiveFailures = 0
		}
	}
	switch o.phase {
	case "emptied":
		o.phase = "half-open"
	case "half-open": // docs/a50.md: "comes back with the endpoints that answered, however few"
		for _, d := range o.endpoints {
			switch {
			case d.answers > 0 && 10*d.refusals <= d.answers+d.refusals:
				d.ejected, d.unproven = false, false
			case d.ejected && d.answers+d.refusals > 0:
				d.ejectedAt = o.now
			}
			mayExpire = mayExpire || o.isSound(d)
		}
	}
	for _, d := range o.endpoints {
		d.answers, d.refusals = 0, 0
		if d.ejected && mayExpire && o.now.After(d.ejectedAt.Add(min(o.config.BaseEjectionTime*time.Duration(d.multiplier), o.config.MaxEjectionTime))) {
			d.ejected, d.unproven = false, true
		} else if !d.ejected && !d.unproven && d.multiplier > 0 {
			d.multiplier--
		}
	}
	o.updatePhase()
}

func (o *proofOracle) String() string {
	var all []string
	anySound := slices.ContainsFunc(o.order, func(name string) bool { return o.isSound(o.endpoints[name]) })
	for _, name := range o.order {
		d := o.endpoints[name]
		all = append(all, fmt.Sprintf("%s ejected=%v told=%v unproven=%v multiplier=%d", name, d.ejected, d.ejected && anySound, d.unproven, d.multiplier))
	}
	return strings.Join(append(all, o.phase), ", ")
}
