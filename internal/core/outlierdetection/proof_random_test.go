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

func TestAgainstProofOracle(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(1500) {
		r := rand.New(rand.NewPCG(seed, 3))
		config := outlierscenario.Default()
		config.Interval = time.Duration(2+r.IntN(10)) * time.Second
		config.BaseEjectionTime = time.Duration(1+r.IntN(20)) * time.Second
		config.MaxEjectionTime = 40 * time.Second
		config.MaxEjectionPercent, config.ReportEmptied = 100, true
		config.ConsecutiveFailuresEjection = &core.ConsecutiveFailuresEjection{Failures: uint32(1 + r.IntN(3)), EnforcementPercentage: 100}
		names := []string{"a", "b", "c"}[:1+r.IntN(3)]
		target := newCoreTarget(drawZero)
		target.Update(config, names)
		want := &proofOracle{config: config, order: names, endpoints: map[string]*modelEndpoint{}, now: target.now, nextSweep: target.now.Add(config.Interval), phase: "usable"}
		for _, name := range names {
			want.endpoints[name] = &modelEndpoint{connection: "connected"}
		}
		var history []string
		for range 150 {
			history = append(history, randomEvent(r, target, want))
			if target.String() != want.String() {
				t.Fatalf("seed %d:\n%s\nwant\n%s\nafter\n%s", seed, target, want, strings.Join(history, "\n"))
			}
			if doubted := target.doubted(); target.core.Listed() != doubted {
				t.Fatalf("seed %d: %d endpoints are kept as doubted, want %d", seed, target.core.Listed(), doubted)
			}
			seen[want.phase]++
			seen["unproven"] += strings.Count(want.String(), "unproven=true")
		}
	}
	if seen["emptied"] < 1000 || seen["half-open"] < 1000 || seen["usable"] < 1000 || seen["unproven"] < 1000 {
		t.Errorf("saw %v, want at least 1000 of each", seen)
	}
}

func randomEvent(r *rand.Rand, target *coreTarget, want *proofOracle) string {
	name := want.order[r.IntN(len(want.order))]
	switch kind := r.IntN(10); {
	case kind < 3:
		deadline := r.IntN(2) == 0
		pause := time.Second / 2
		for _, d := range []time.Duration{pause, pause} {
			target.Advance(d)
			want.advance(d)
			if d == pause {
				pause = 0
				target.Begin(name, deadline)
				want.begin(name, deadline)
			}
		}
		return fmt.Sprintf("begin %s deadline=%v", name, deadline)
	case kind < 7 && len(want.endpoints[name].calls) > 0:
		how := []string{"ok", "failed", "lost", "cancelled", "dropped", "failed", "lost"}[r.IntN(7)]
		n := 1 + r.IntN(len(want.endpoints[name].calls))
		for range n {
			target.End(name, how)
			want.end(name, how)
		}
		return fmt.Sprintf("end %s %s=%d", name, how, n)
	case kind < 8:
		d := time.Duration(1+r.IntN(8)) * time.Second
		target.Advance(d)
		want.advance(d)
		return fmt.Sprintf("advance %v", d)
	}
	how := []string{"connect", "connect", "disconnect", "refuse"}[r.IntN(4)]
	target.Connect(name, how)
	want.connect(name, how)
	return how + " " + name
}

func (a *coreTarget) doubted() (n int) {
	for _, e := range a.core.Endpoints() {
		if e.Doubted() {
			n++
		}
	}
	return n
}

func (a *coreTarget) String() string {
	var all []string
	for _, e := range a.core.Endpoints() {
		all = append(all, fmt.Sprintf("%s ejected=%v told=%v unproven=%v multiplier=%d", e.Attached.name, e.Ejected(), e.VisiblyEjected(), e.Unproven(), e.Multiplier()))
	}
	return strings.Join(append(all, a.core.Phase().String()), ", ")
}
