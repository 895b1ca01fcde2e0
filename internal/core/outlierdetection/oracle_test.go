package outlierdetection_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	core "github.com/understudy-lb/understudy/internal/core/outlierdetection"
	"github.com/understudy-lb/understudy/internal/testing/outlierscenario"
)

// oracle is A50's text, as dumb as can be: a map, two buckets, and one loop for each
// numbered list. What docs/a50.md lists as beyond A50, and is not a matter of tiers, is
// in it.
type oracle struct {
	config     core.Config
	entries    map[string]*entry
	order      []string
	timerStart *time.Time
	now        time.Time
	random     func() uint32
}

// entry is a value of A50's map.
type entry struct {
	active, inactive bucket
	row              int
	ejection         *time.Time
	multiplier       int
}

type bucket struct{ successes, failures int }

func (b bucket) total() int { return b.successes + b.failures }

func (o *oracle) unset() bool {
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
		if o.unset() {
			e.ejection, e.multiplier = nil, 0
		}
	}
	switch {
	case o.unset():
		o.timerStart = nil
	case o.timerStart == nil:
		now := o.now
		o.timerStart = &now
		for _, e := range o.entries {
			e.active, e.row = bucket{}, 0
		}
	}
}

func (o *oracle) call(address string, ok bool) {
	e := o.entries[address]
	if o.unset() {
		return
	}
	if ok {
		e.active.successes++
		e.row = 0
		return
	}
	e.active.failures++
	e.row++
	if c := o.config.ConsecutiveFailuresEjection; c != nil && e.row == int(c.Failures) {
		e.row = 0
		if e.ejection == nil && !o.tooMany() && o.random() < c.EnforcementPercentage {
			o.eject(e, o.now)
		}
	}
}

func (o *oracle) tooMany() bool {
	ejected := 0
	for _, e := range o.entries {
		if e.ejection != nil {
			ejected++
		}
	}
	return ejected > 0 && float64(ejected+1)/float64(len(o.entries)) > float64(o.config.MaxEjectionPercent)/100
}

func (o *oracle) eject(e *entry, at time.Time) {
	e.ejection = &at
	e.multiplier++
}

func (o *oracle) advance(d time.Duration) {
	end := o.now.Add(d)
	for o.timerStart != nil {
		at := o.timerStart.Add(o.config.Interval)
		if at.Before(o.now) {
			at = o.now
		}
		if at.After(end) {
			break
		}
		o.now = at
		o.timer()
	}
	o.now = end
}

func (o *oracle) timer() {
	start := o.now // 1.
	o.timerStart = &start
	for _, e := range o.entries { // 2.
		e.inactive = bucket{}
		e.inactive, e.active = e.active, e.inactive
	}
	if o.config.SuccessRateEjection != nil { // 3.
		o.successRate(start)
	}
	if o.config.FailurePercentageEjection != nil { // 4.
		o.failurePercentage(start)
	}
	for _, e := range o.entries { // 5.
		if e.ejection == nil {
			if e.multiplier > 0 {
				e.multiplier--
			}
			continue
		}
		after := e.ejection.Add(min(o.config.BaseEjectionTime*time.Duration(e.multiplier), max(o.config.BaseEjectionTime, o.config.MaxEjectionTime)))
		if o.now.After(after) {
			e.ejection = nil
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
	if len(rates) < int(config.MinimumHosts) { // 1.
		return
	}
	mean, squares := 0.0, 0.0 // 2.
	for _, address := range o.order {
		mean += rates[address] / float64(len(rates))
	}
	for _, rate := range rates {
		squares += (rate - mean) * (rate - mean) / float64(len(rates))
	}
	for _, address := range o.order { // 3.
		if o.tooMany() {
			return
		}
		rate, ok := rates[address]
		if !ok || o.entries[address].ejection != nil {
			continue
		}
		// Sums in another order differ in their last digits, which decide nothing here.
		least := mean - math.Sqrt(squares)*float64(config.StdevFactor)/1000
		if rate < least-1e-9 && o.random() < config.EnforcementPercentage {
			o.eject(o.entries[address], start)
		}
	}
}

func (o *oracle) failurePercentage(start time.Time) {
	config := o.config.FailurePercentageEjection
	if len(o.entries) < int(config.MinimumHosts) { // 1.
		return
	}
	for _, address := range o.order { // 2.
		e := o.entries[address]
		if o.tooMany() {
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

func (o *oracle) ejected() string {
	var all []string
	for _, address := range o.order {
		if e := o.entries[address]; e.ejection != nil {
			all = append(all, fmt.Sprintf("%s*%d", address, e.multiplier))
		}
	}
	return strings.Join(all, " ")
}

// randomConfig returns a configuration whose numbers are small enough to matter.
func randomConfig(r *rand.Rand) core.Config {
	config := outlierscenario.Default()
	config.Interval = time.Duration(1+r.IntN(20)) * time.Second
	config.BaseEjectionTime = time.Duration(r.IntN(60)) * time.Second
	config.MaxEjectionTime = time.Duration(r.IntN(100)) * time.Second
	config.MaxEjectionPercent = []uint32{0, 10, 20, 25, 34, 50, 100}[r.IntN(7)]
	enforcement := []uint32{0, 30, 100, 100}[r.IntN(4)]
	if r.IntN(2) == 0 {
		config.SuccessRateEjection = &core.SuccessRateEjection{
			StdevFactor: uint32(r.IntN(1900)), EnforcementPercentage: enforcement, MinimumHosts: uint32(r.IntN(5)), RequestVolume: uint32(r.IntN(8)),
		}
	}
	if r.IntN(2) == 0 {
		config.FailurePercentageEjection = &core.FailurePercentageEjection{
			Threshold: uint32(r.IntN(101)), EnforcementPercentage: enforcement, MinimumHosts: uint32(r.IntN(5)), RequestVolume: uint32(r.IntN(8)),
		}
	}
	if r.IntN(3) == 0 {
		config.ConsecutiveFailuresEjection = &core.ConsecutiveFailuresEjection{Failures: uint32(1 + r.IntN(6)), EnforcementPercentage: enforcement}
	}
	return config
}

func randomList(r *rand.Rand) []string {
	all := []string{"a", "b", "c", "d", "e", "f"}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:r.IntN(len(all)+1)]
}

// What is random is drawn from the same numbers on both sides, so one number too many or
// too few shows, too.
func TestAgainstTheOracle(t *testing.T) {
	ejections := 0
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 0))
		drawn := func() func() uint32 {
			numbers := rand.New(rand.NewPCG(seed, 1))
			return func() uint32 { return numbers.Uint32N(100) }
		}
		ours := newAlone(drawn())
		want := &oracle{entries: map[string]*entry{}, now: ours.now, random: drawn()}
		var history []string
		for range 60 {
			switch step := r.IntN(10); {
			case step == 0 || len(history) == 0:
				config, list := randomConfig(r), randomList(r)
				ours.Update(config, list)
				want.update(config, list)
				history = append(history, fmt.Sprintf("update %v %+v", list, config))
			case step < 7 && len(want.order) > 0:
				address := want.order[r.IntN(len(want.order))]
				ok, fail := r.IntN(8), r.IntN(8)
				for range ok {
					ours.Call(address, true)
					want.call(address, true)
				}
				for range fail {
					ours.Call(address, false)
					want.call(address, false)
				}
				history = append(history, fmt.Sprintf("calls %s ok=%d failed=%d", address, ok, fail))
			default:
				d := time.Duration(1+r.IntN(25)) * time.Second
				ours.Advance(d)
				want.advance(d)
				history = append(history, fmt.Sprintf("advance %v", d))
			}
			if got := ours.ejected(); got != want.ejected() {
				t.Fatalf("seed %d: ejected %q, want %q, after\n%s", seed, got, want.ejected(), strings.Join(history, "\n"))
			}
			ejections += strings.Count(want.ejected(), "*")
		}
	}
	if ejections < 5_000 {
		t.Errorf("saw %d endpoints ejected, want enough to compare", ejections)
	}
}

func (a *alone) ejected() string {
	var all []string
	for _, e := range a.core.Endpoints() {
		if e.Ejected() {
			all = append(all, fmt.Sprintf("%s*%d", e.Shell.name, e.Multiplier()))
		}
	}
	return strings.Join(all, " ")
}

// The last usable endpoint is never taken away from a tier that says when it is emptied,
// and what its child is told is what follows from its phase, whatever happens.
func TestTheLastUsableEndpointStays(t *testing.T) {
	phases := map[core.Phase]int{}
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 2))
		a := newAlone(func() uint32 { return r.Uint32N(100) })
		for step := range 60 {
			names := []string{"a", "b", "c", "d", "e", "f"}
			switch what := r.IntN(12); {
			case what == 0 || step == 0:
				config := randomConfig(r)
				config.ReportEmptied = true
				a.Update(config, randomList(r))
			case what < 7 && a.known[names[what-1]] != nil:
				for range r.IntN(12) {
					a.Call(names[what-1], r.IntN(3) == 0)
				}
			case what < 9:
				if name := names[r.IntN(6)]; a.known[name] != nil {
					a.Connect(name, what == 7)
				}
			default:
				a.Advance(time.Duration(1+r.IntN(25)) * time.Second)
			}
			phase := a.core.Phase()
			phases[phase]++
			for _, e := range a.core.Endpoints() {
				if want := e.Ejected() && phase == core.Usable; e.Told() != want {
					t.Fatalf("seed %d: in a tier that is %v, %s is ejected: %v, told: %v", seed, phase, e.Shell.name, e.Ejected(), e.Told())
				}
			}
			if connected, told := a.connected(); connected > 0 && connected == told {
				t.Fatalf("seed %d: all %d endpoints that are connected are told to be ejected", seed, connected)
			}
		}
	}
	if phases[core.Emptied] < 100 || phases[core.HalfOpen] < 100 || phases[core.Usable] < 1000 {
		t.Errorf("saw %v, want enough of each phase", phases)
	}
}
