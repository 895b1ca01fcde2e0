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
	config core.Config
	order  []string
	of     map[string]*doubtful
	now    time.Time
	sweep  time.Time
	phase  string
	tick   int
}

type doubtful struct {
	connection        string
	ejected, unproven bool
	ejectedAt         time.Time
	multiplier        int
	row, rowBegan     int
	epoch             int // only calls that begin after this tick count as proof
	lastLost          bool
	byLoss, gone      bool
	calls             []*underWay
	answers, refusals int
}

type underWay struct {
	began    int
	at       time.Time
	deadline bool
	counted  bool
	doubted  bool
}

func (o *proofOracle) sound(d *doubtful) bool {
	return !d.ejected && !d.unproven && d.connection != "broken"
}

// settle computes the phase from two sentences of docs/a50.md. The priority is "not emptied while
// an endpoint that is neither ejected nor unproven connects and has not failed". Without a
// connected endpoint, it is emptied only if an endpoint reconnects that was "ejected by calls that
// ended with its connection".
func (o *proofOracle) settle() {
	var sound, doubted, connected, lost, returning int
	for _, d := range o.of {
		if o.sound(d) {
			sound++
		}
		if d.ejected || d.unproven {
			doubted++
		}
		byLoss := d.ejected && d.byLoss && d.gone
		if d.connection == "connecting" && byLoss {
			returning++
		}
		if d.connection == "connected" {
			connected++
			if byLoss {
				lost++
			}
		}
	}
	switch {
	case sound > 0 || doubted == 0:
		o.phase = "usable"
	case connected+returning > 0 && o.phase == "usable":
		o.phase = "emptied"
		for _, d := range o.of {
			if d.ejected || d.unproven {
				o.renew(d)
			}
		}
	}
	if o.phase == "emptied" && connected > 0 && lost == connected {
		o.phase = "half-open"
	}
}

func (o *proofOracle) renew(d *doubtful) {
	d.epoch, d.answers, d.refusals = o.tick, 0, 0
}

func (o *proofOracle) begin(name string, deadline bool) {
	o.tick++
	d := o.of[name]
	d.calls = append(d.calls, &underWay{began: o.tick, at: o.now, deadline: deadline, doubted: d.ejected || d.unproven})
}

func (o *proofOracle) end(name, how string) {
	o.tick++
	d := o.of[name]
	c := d.calls[0]
	d.calls = d.calls[1:]
	switch how {
	case "ok", "cancelled":
		if c.began > d.rowBegan {
			d.row = 0
		}
		o.answered(d, c)
	case "failed", "lost":
		if c.doubted && c.began > d.epoch {
			d.refusals++
		}
		d.lastLost = how == "lost"
		if d.row++; d.row == 1 {
			d.rowBegan = o.tick
		}
		if d.row == int(o.config.ConsecutiveFailuresEjection.Failures) {
			d.row = 0
			if !d.ejected {
				o.eject(d)
			}
		}
	}
	o.settle()
}

func (o *proofOracle) eject(d *doubtful) {
	d.ejected, d.unproven, d.ejectedAt = true, false, o.now
	d.multiplier++
	d.byLoss, d.gone = d.lastLost, d.connection != "connected"
	o.renew(d)
}

func (o *proofOracle) answered(d *doubtful, c *underWay) {
	if !c.doubted || c.began <= d.epoch || !d.ejected && !d.unproven {
		return
	}
	d.answers++
	d.unproven = false
}

func (o *proofOracle) connect(name, how string) {
	o.tick++
	d := o.of[name]
	now := map[string]string{"connect": "connected", "disconnect": "connecting", "refuse": "broken"}[how]
	if d.connection == "broken" && now == "connecting" {
		return
	}
	if d.connection == "connected" && now != "connected" && d.ejected {
		d.gone = true // the endpoint was ejected because of calls on this connection
	}
	if d.connection == "broken" && now == "connected" && o.phase != "usable" && !d.ejected && !d.unproven {
		d.unproven = true
		o.renew(d)
	}
	d.connection = now
	o.settle()
}

func (o *proofOracle) advance(d time.Duration) {
	for end := o.now.Add(d); o.now.Before(end); {
		o.now = o.now.Add(time.Second / 2)
		o.tick++
		if o.now.Equal(o.sweep) {
			o.timer()
			o.sweep = o.now.Add(o.config.Interval)
		}
		for _, name := range o.order {
			for _, c := range o.of[name].calls {
				if !c.deadline && !c.counted && o.now.Sub(c.at) == o.config.Interval {
					c.counted = true
					o.answered(o.of[name], c)
					o.settle()
				}
			}
		}
	}
}

func (o *proofOracle) timer() {
	byTime := o.phase == "usable"
	for _, d := range o.of {
		if d.ejected {
			d.row = 0
		}
	}
	switch o.phase {
	case "emptied":
		o.phase = "half-open"
	case "half-open": // docs/a50.md: "comes back with the endpoints that answered, however few"
		for _, d := range o.of {
			switch {
			case d.answers > 0 && 10*d.refusals <= d.answers+d.refusals:
				d.ejected, d.unproven = false, false
			case d.ejected && d.answers+d.refusals > 0:
				d.ejectedAt = o.now
			}
			byTime = byTime || o.sound(d)
		}
	}
	for _, d := range o.of {
		d.answers, d.refusals = 0, 0
		if d.ejected && byTime && o.now.After(d.ejectedAt.Add(min(o.config.BaseEjectionTime*time.Duration(d.multiplier), o.config.MaxEjectionTime))) {
			d.ejected, d.unproven = false, true
		} else if !d.ejected && !d.unproven && d.multiplier > 0 {
			d.multiplier--
		}
	}
	o.settle()
}

func (o *proofOracle) String() string {
	var all []string
	told := slices.ContainsFunc(o.order, func(name string) bool { return o.sound(o.of[name]) })
	for _, name := range o.order {
		d := o.of[name]
		all = append(all, fmt.Sprintf("%s ejected=%v told=%v unproven=%v multiplier=%d", name, d.ejected, d.ejected && told, d.unproven, d.multiplier))
	}
	return strings.Join(append(all, o.phase), ", ")
}
