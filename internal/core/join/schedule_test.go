package join

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestAgainstTheOracle(t *testing.T) {
	for seed := range uint64(*schedules) {
		if wrong, log := play(seed); wrong != "" {
			t.Fatalf("seed %d: %s\n%s", seed, wrong, strings.Join(log, "\n"))
		}
	}
}

func play(seed uint64) (wrong string, log []string) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	begin := time.Unix(0, 0)
	o := &oracle{start: begin, kept: make(map[string]Kept)}
	r := &rival{oracle: o, now: begin, timers: make(map[Timer]time.Time), kept: make(map[string]Kept), names: make(map[ID]string), running: make(map[ID]bool)}
	var list []Mechanism
	most := 3
	if seed%2 == 0 {
		most = 1
	}
	for _, name := range []string{"a", "b", "c"}[:1+rnd.IntN(most)] {
		list = append(list, Mechanism{Name: name})
		o.list = append(o.list, &theirs{name: name})
	}
	for _, name := range []string{"a", "b", "a/x", "a/y", "b/x"} {
		switch rnd.IntN(6) {
		case 0:
			o.kept[name] = Kept{Answer: Answer{Content: "K" + name}}
		case 1:
			if !strings.Contains(name, "/") {
				o.kept[name] = Kept{Parts: drawnParts(rnd, 1+most)}
			}
		}
	}
	maps.Copy(r.kept, o.kept)
	r.logf("kept %v", o.kept)
	if len(list) > 1 {
		o.first = begin
	}
	var actions []Action
	r.core, actions = New(Config{Patience: Patience, Kept: r.recall}, list)
	r.do(actions)
	r.compare()
	for range 5 + rnd.IntN(35) {
		if r.wrong == "" {
			r.step(rnd)
		}
	}
	return r.wrong, r.log
}

func (r *rival) logf(format string, args ...any) {
	r.log = append(r.log, fmt.Sprintf("%8v  ", r.now.Sub(time.Unix(0, 0)))+fmt.Sprintf(format, args...))
}

func drawnParts(rnd *rand.Rand, names int) (list []Mechanism) {
	names = min(names, 3)
	for i, name := range []string{"x", "y", "z"}[:names] {
		if rnd.IntN(2) == 0 || i == names-1 && list == nil {
			list = append(list, Mechanism{Name: name, Source: rnd.IntN(3)})
		}
	}
	return list
}

func (r *rival) step(rnd *rand.Rand) {
	alive := r.oracle.alive()
	m := alive[rnd.IntN(len(alive))]
	if len(r.pending) > 0 && rnd.IntN(3) > 0 {
		r.begin(rnd)
		return
	}
	switch k := rnd.IntN(20); {
	case k < 6:
		a := Answer{Content: fmt.Sprint("ABC"[rnd.IntN(3):][:1])}
		if rnd.IntN(4) == 0 {
			a.Content, a.Why = "E", "no endpoints"
		}
		r.logf("%s answers %v", m.name, a.Content)
		if !r.oracle.closed {
			r.oracle.answered(m, a)
		}
		r.do(r.core.Answered(r.now, m.id, a))
	case k < 10:
		why := fmt.Sprint("down ", rnd.IntN(2))
		r.logf("%s fails: %s", m.name, why)
		if !r.oracle.closed {
			r.oracle.failed(r.now, m, why)
		}
		r.do(r.core.Failed(r.now, m.id, why))
	case k < 14:
		list := drawnParts(rnd, 1+len(r.oracle.list))
		r.logf("%s is replaced by %v", m.name, list)
		if !r.oracle.closed {
			r.oracle.said(r.now, m, list)
			r.oracle.settle(r.now)
		}
		r.do(r.core.Replaced(r.now, m.id, list))
	case k < 15:
		r.logf("%s confirms", m.name)
		if !r.oracle.closed && m.phase == Answered && !m.inherited && !m.recalled {
			m.trouble = ""
		}
		r.do(r.core.Confirmed(r.now, m.id))
	case k == 19 && rnd.IntN(4) == 0:
		r.logf("closed")
		r.do(r.core.Closed(r.now))
		r.oracle.closed = true
	default:
		r.pass([]time.Duration{50, 170, 230, 1900, 2300, 9700, 12_100}[rnd.IntN(7)] * time.Millisecond)
		return
	}
	r.compare()
}

func (r *rival) begin(rnd *rand.Rand) {
	id := r.pending[0]
	r.pending = r.pending[1:]
	m := r.oracle.byID(id)
	r.running[id] = true
	fails := rnd.IntN(8) == 0
	r.logf("%s is started, fails: %v", r.names[id], fails)
	if m != nil {
		m.begun = true
		_, kept := r.oracle.kept[m.name]
		switch {
		case r.oracle.closed:
		case fails:
			r.oracle.failed(r.now, m, "not started")
		case m.phase == Outstanding && kept && m.whole != nil && m.whole.recalled:
			m.silentTil = r.now.Add(HushOfPart)
		case m.phase == Outstanding && kept:
			m.silentTil = r.now.Add(Hush)
		}
	}
	r.oracle.settle(r.now)
	if fails {
		r.do(r.core.NotStarted(r.now, id, "not started"))
	} else {
		r.do(r.core.Started(r.now, id, Hears{}))
	}
	r.compare()
}

func (r *rival) pass(d time.Duration) {
	r.logf("%v pass", d)
	end := r.now.Add(d)
	for r.wrong == "" {
		var due []Timer
		for t, at := range r.timers {
			if at.After(end) || len(due) > 0 && at.After(r.timers[due[0]]) {
				continue
			}
			if len(due) > 0 && at.Before(r.timers[due[0]]) {
				due = nil
			}
			due = append(due, t)
		}
		if len(due) == 0 {
			break
		}
		slices.SortFunc(due, func(a, b Timer) int { return int(a.ID-b.ID)*100 + int(a.Wait-b.Wait) })
		r.now = r.timers[due[0]]
		r.oracle.settle(r.now)
		for _, t := range due {
			if _, still := r.timers[t]; still {
				delete(r.timers, t)
				r.act(r.core.Waited(r.now, t))
			}
		}
		r.do(nil)
		r.compare()
	}
	r.now = end
	if r.wrong == "" {
		r.compare()
	}
}
