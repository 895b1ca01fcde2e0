package outlierdetection_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	core "github.com/understudy-lb/understudy/internal/core/outlierdetection"
)

// oracle is a simple implementation of gRFC A50 and of the additions in docs/a50.md.
type oracle struct {
	config     core.Config
	entries    map[string]*entry
	order      []string
	timerStart *time.Time
	now        time.Time
	random     func() uint32
	events     int
	seen       map[string]int // how often each rule of BelowOverflow has changed something
}

type entry struct {
	active, inactive    bucket
	consecutiveFailures int
	ejection            *time.Time
	multiplier          int

	calls                      []int // the event with which each running call began
	firstFailure, ejectedEvent int
	distrustedSince            int  // the event with which an ejection ended by time, or 0 after an answer
	unreachable                bool // an attempt to connect has failed since the last connection
}

type bucket struct{ successes, failures int }

func (b bucket) total() int { return b.successes + b.failures }

func (o *oracle) isNoOp() bool {
	return o.config.SuccessRateEjection == nil && o.config.FailurePercentageEjection == nil && o.config.ConsecutiveFailuresEjection == nil
}

func (o *oracle) update(config core.Config, list []string) {
	o.config, o.order = config, list
	for _, address := range list {
		if o.entries[address] == nil {
			o.entries[address] = &entry{}
		}
	}
	for address, e := range o.entries {
		if !slices.Contains(list, address) {
			delete(o.entries, address)
		}
		if o.isNoOp() {
			e.ejection, e.multiplier = nil, 0
		}
		if o.isNoOp() || !config.BelowOverflow {
			e.distrustedSince = 0
		}
	}
	switch {
	case o.isNoOp():
		o.timerStart = nil
	case o.timerStart == nil:
		now := o.now
		o.timerStart = &now
		for _, e := range o.entries {
			e.active, e.consecutiveFailures = bucket{}, 0
		}
	}
}

func (o *oracle) begin(address string) {
	o.events++
	o.entries[address].calls = append(o.entries[address].calls, o.events)
}

func (o *oracle) end(address string, ok bool) {
	o.events++
	e := o.entries[address]
	began := e.calls[0]
	e.calls = e.calls[1:]
	if o.isNoOp() {
		return
	}
	if ok {
		e.active.successes++
		if began > e.firstFailure {
			e.consecutiveFailures = 0
		}
		if began > e.ejectedEvent {
			if e.ejection != nil && o.noneIsSound() {
				e.ejection = nil
				o.seen["ended by an answer"]++
			}
			e.distrustedSince = 0
		}
		return
	}
	e.active.failures++
	e.consecutiveFailures++
	if e.consecutiveFailures == 1 {
		e.firstFailure = o.events
	}
	config := o.config.ConsecutiveFailuresEjection
	if config == nil {
		return
	}
	inARow := e.consecutiveFailures >= int(config.Failures)
	if inARow {
		e.consecutiveFailures = 0
	}
	distrusted := e.distrustedSince > 0 && began > e.distrustedSince
	if (inARow || distrusted) && e.ejection == nil && !o.limitReached() && o.random() < config.EnforcementPercentage {
		o.eject(e, o.now)
		if !inARow {
			o.seen["ejected at once"]++
		}
	}
}

func (o *oracle) connect(address, event string) {
	if event != "disconnect" {
		o.entries[address].unreachable = event == "refuse"
	}
}

// noneIsSound reports whether the child sees no ejections.
func (o *oracle) noneIsSound() bool {
	for _, e := range o.entries {
		if e.ejection == nil && !e.unreachable {
			return false
		}
	}
	return o.config.BelowOverflow
}

func (o *oracle) limitReached() bool {
	ejected := 0
	for _, e := range o.entries {
		if e.ejection != nil {
			ejected++
		}
	}
	return ejected > 0 && float64(ejected+1)/float64(len(o.entries)) > float64(o.config.MaxEjectionPercent)/100
}

func (o *oracle) eject(e *entry, now time.Time) {
	e.ejection = &now
	e.multiplier++
	e.ejectedEvent, e.distrustedSince = o.events, 0
}

func (o *oracle) advance(d time.Duration) {
	end := o.now.Add(d)
	for o.timerStart != nil {
		due := o.timerStart.Add(o.config.Interval)
		if due.Before(o.now) {
			due = o.now
		}
		if due.After(end) {
			break
		}
		o.now = due
		o.timer()
	}
	o.now = end
}

// timer follows the steps that gRFC A50 lists for the interval timer. The methods successRate and
// failurePercentage follow the steps of its two algorithms.
func (o *oracle) timer() {
	start := o.now
	o.timerStart = &start
	for _, e := range o.entries {
		e.inactive = bucket{}
		e.inactive, e.active = e.active, e.inactive
		if e.ejection != nil {
			e.consecutiveFailures = 0 // the counted failures are of calls during the ejection, or before it
		}
	}
	if o.config.SuccessRateEjection != nil {
		o.successRate(start)
	}
	if o.config.FailurePercentageEjection != nil {
		o.failurePercentage(start)
	}
	for _, e := range o.entries {
		if e.ejection == nil {
			if o.config.BelowOverflow && e.inactive.successes == 0 {
				o.seen["kept its multiplier"] += min(1, e.multiplier)
			} else if e.multiplier > 0 {
				e.multiplier--
			}
			continue
		}
		end := e.ejection.Add(min(o.config.BaseEjectionTime*time.Duration(e.multiplier), max(o.config.BaseEjectionTime, o.config.MaxEjectionTime)))
		if o.now.After(end) {
			e.ejection = nil
			if o.config.BelowOverflow {
				e.distrustedSince = o.events
			}
		}
	}
}

func (o *oracle) successRate(start time.Time) {
	config := o.config.SuccessRateEjection
	rates := map[string]float64{}
	for address, e := range o.entries {
		if n := e.inactive.total(); n >= int(config.RequestVolume) && n > 0 {
			rates[address] = float64(e.inactive.successes) / float64(n)
		}
	}
	if len(rates) < int(config.MinimumHosts) {
		return
	}
	mean, squares := 0.0, 0.0
	for _, address := range o.order {
		mean += rates[address] / float64(len(rates))
	}
	for _, rate := range rates {
		squares += (rate - mean) * (rate - mean) / float64(len(rates))
	}
	for _, address := range o.order {
		if o.limitReached() {
			return
		}
		rate, ok := rates[address]
		if !ok || o.entries[address].ejection != nil {
			continue
		}
		// The core adds up the rates in another order, so the sums may differ by rounding.
		threshold := mean - math.Sqrt(squares)*float64(config.StdevFactor)/1000
		if rate < threshold-1e-9 && o.random() < config.EnforcementPercentage {
			o.eject(o.entries[address], start)
		}
	}
}

func (o *oracle) failurePercentage(start time.Time) {
	config := o.config.FailurePercentageEjection
	if len(o.entries) < int(config.MinimumHosts) {
		return
	}
	for _, address := range o.order {
		e := o.entries[address]
		if o.limitReached() {
			return
		}
		n := e.inactive.total()
		if n < int(config.RequestVolume) || n == 0 || e.ejection != nil {
			continue
		}
		if e.inactive.failures*100 > int(config.Threshold)*n && o.random() < config.EnforcementPercentage {
			o.eject(e, start)
		}
	}
}

func (o *oracle) String() string {
	var all []string
	for _, address := range o.order {
		if e := o.entries[address]; e.ejection != nil {
			all = append(all, fmt.Sprintf("%s*%d visible=%v", address, e.multiplier, !o.noneIsSound()))
		}
	}
	return strings.Join(all, " ")
}
