package outlierdetection_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	core "github.com/understudy-lb/understudy/internal/core/outlierdetection"
	"github.com/understudy-lb/understudy/internal/testing/outlierscenario"
)

func randomConfig(r *rand.Rand) core.Config {
	config := outlierscenario.Default()
	config.Interval = time.Duration(1+r.IntN(20)) * time.Second
	config.BaseEjectionTime = time.Duration(r.IntN(30)) * time.Second
	config.MaxEjectionTime = time.Duration(r.IntN(100)) * time.Second
	config.MaxEjectionPercent = []uint32{0, 10, 20, 25, 34, 50, 100}[r.IntN(7)]
	config.BelowOverflow = r.IntN(2) == 0
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
	if r.IntN(2) == 0 {
		config.ConsecutiveFailuresEjection = &core.ConsecutiveFailuresEjection{Failures: uint32(1 + r.IntN(6)), EnforcementPercentage: enforcement}
	}
	return config
}

func randomList(r *rand.Rand) []string {
	all := []string{"a", "b", "c", "d", "e", "f"}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:r.IntN(len(all)+1)]
}

// The core and the oracle use equal sequences of random numbers. If one of them uses a number too
// many, their ejections differ.
func TestAgainstTheOracle(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 0))
		newRandom := func() func() uint32 {
			numbers := rand.New(rand.NewPCG(seed, 1))
			return func() uint32 { return numbers.Uint32N(100) }
		}
		target := newCoreTarget(newRandom())
		want := &oracle{entries: map[string]*entry{}, now: target.now, random: newRandom(), seen: seen}
		var history []string
		for range 60 {
			switch step := r.IntN(10); {
			case step == 0 || len(history) == 0:
				config, list := randomConfig(r), randomList(r)
				target.Update(config, list)
				want.update(config, list)
				want.advance(0)
				history = append(history, fmt.Sprintf("update %v %+v", list, config))
			case step == 1 && len(want.order) > 0:
				address, event := want.order[r.IntN(len(want.order))], []string{"connect", "connect", "disconnect", "refuse"}[r.IntN(4)]
				target.Connect(address, event)
				want.connect(address, event)
				history = append(history, event+" "+address)
			case step < 4 && len(want.order) > 0:
				address, n := want.order[r.IntN(len(want.order))], r.IntN(4)
				for range n {
					target.Begin(address)
					want.begin(address)
				}
				history = append(history, fmt.Sprintf("begin %s %d", address, n))
			case step < 7 && len(want.order) > 0:
				address := want.order[r.IntN(len(want.order))]
				ok, fail := r.IntN(8)*r.IntN(2), r.IntN(8)
				for i := range ok + fail {
					target.Begin(address)
					want.begin(address)
					target.End(address, map[bool]string{true: "ok", false: "failed"}[i < ok])
					want.end(address, i < ok)
				}
				history = append(history, fmt.Sprintf("calls %s ok=%d failed=%d", address, ok, fail))
			default:
				d := time.Duration(1+r.IntN(25)) * time.Second
				target.Advance(d)
				want.advance(d)
				history = append(history, fmt.Sprintf("advance %v", d))
			}
			if target.String() != want.String() {
				t.Fatalf("seed %d: ejected %q, want %q, after\n%s", seed, target, want, strings.Join(history, "\n"))
			}
			seen["ejected"] += strings.Count(want.String(), "*")
			seen["hidden"] += strings.Count(want.String(), "visible=false")
		}
	}
	for what, least := range map[string]int{"ejected": 10_000, "hidden": 500, "ended by an answer": 100, "ejected at once": 50, "kept its multiplier": 500} {
		if seen[what] < least {
			t.Errorf("saw %q %d times, want at least %d", what, seen[what], least)
		}
	}
}

func (a *coreTarget) String() string {
	var all []string
	for _, e := range a.core.Endpoints() {
		if e.Ejected() {
			all = append(all, fmt.Sprintf("%s*%d visible=%v", e.Attached.name, e.Multiplier(), e.VisiblyEjected()))
		}
	}
	return strings.Join(all, " ")
}
