package join

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func TestAgainstTheOracle(t *testing.T) {
	for seed := range uint64(*schedules) {
		if failure, log := runSchedule(seed); failure != "" {
			t.Fatalf("seed %d: %s\n%s", seed, failure, strings.Join(log, "\n"))
		}
	}
}

func runSchedule(seed uint64) (failure string, log []string) {
	random := rand.New(rand.NewPCG(seed, 1))
	startTime := time.Unix(0, 0)
	o := &oracle{start: startTime, kept: make(map[string]Kept)}
	r := &comparison{oracle: o, now: startTime, kept: make(map[string]Kept), names: make(map[ID]string), running: make(map[ID]bool), stopped: make(map[ID]bool)}
	var list []Mechanism
	maxMechanisms := 3
	if seed%2 == 0 {
		maxMechanisms = 1
	}
	for _, name := range []string{"a", "b", "c"}[:1+random.IntN(maxMechanisms)] {
		list = append(list, Mechanism{Name: name})
		o.list = append(o.list, &modelMechanism{name: name})
	}
	for _, name := range []string{"a", "b", "a/x", "a/y", "b/x"} {
		switch random.IntN(6) {
		case 0:
			o.kept[name] = Kept{Answer: Answer{Content: "K" + name}}
		case 1:
			if !strings.Contains(name, "/") {
				o.kept[name] = Kept{List: drawList(random, 1+maxMechanisms)}
			}
		}
	}
	maps.Copy(r.kept, o.kept)
	r.logf("kept %v", o.kept)
	if len(list) > 1 {
		o.firstWaitStart = startTime
	}
	var actions []Action
	r.core, actions = New(r.now, Config{Patience: Patience, Kept: r.recall}, list)
	r.process(actions)
	r.compare()
	for range 5 + random.IntN(35) {
		if r.failure == "" {
			r.step(random)
		}
	}
	return r.failure, r.log
}

func (r *comparison) logf(format string, args ...any) {
	r.log = append(r.log, fmt.Sprintf("%8v  ", r.now.Sub(time.Unix(0, 0)))+fmt.Sprintf(format, args...))
}

func drawList(rnd *rand.Rand, names int) (list []Mechanism) {
	names = min(names, 3)
	for i, name := range []string{"x", "y", "z"}[:names] {
		if rnd.IntN(2) == 0 || i == names-1 && list == nil {
			list = append(list, Mechanism{Name: name, Source: rnd.IntN(3)})
		}
	}
	return list
}

func (r *comparison) step(rnd *rand.Rand) {
	mechanisms := r.oracle.mechanisms()
	m := mechanisms[rnd.IntN(len(mechanisms))]
	if len(r.pending) > 0 && rnd.IntN(3) > 0 {
		r.startPending(rnd)
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
		r.process(r.core.Answered(r.now, m.id, a))
	case k < 10:
		why := fmt.Sprint("down ", rnd.IntN(2))
		r.logf("%s fails: %s", m.name, why)
		if !r.oracle.closed {
			r.oracle.failed(r.now, m, why)
		}
		r.process(r.core.Failed(r.now, m.id, why))
	case k < 14:
		list := drawList(rnd, 1+len(r.oracle.list))
		r.logf("%s is replaced by %v", m.name, list)
		if !r.oracle.closed {
			r.oracle.answeredWithList(r.now, m, list)
			r.oracle.applyTimers(r.now)
		}
		r.process(r.core.Replaced(r.now, m.id, list))
	case k < 15:
		r.logf("%s confirms", m.name)
		if !r.oracle.closed && m.phase == Answered && !m.fromStore {
			m.trouble = ""
		}
		r.process(r.core.Confirmed(r.now, m.id))
	case k == 19 && rnd.IntN(4) == 0:
		r.logf("closed")
		r.process(r.core.Closed(r.now))
		r.oracle.closed = true
	default:
		r.pass([]time.Duration{50, 170, 230, 1900, 2300, 9700, 12_100}[rnd.IntN(7)] * time.Millisecond)
		return
	}
	r.compare()
}

func (r *comparison) startPending(rnd *rand.Rand) {
	id := r.pending[0]
	r.pending = r.pending[1:]
	m := r.oracle.byID(id)
	if !r.stopped[id] {
		r.running[id] = true
	}
	mustFail := rnd.IntN(8) == 0
	r.logf("%s is started, fails: %v", r.names[id], mustFail)
	if m != nil {
		m.started = true
		_, kept := r.oracle.kept[m.name]
		switch {
		case r.oracle.closed:
		case mustFail:
			r.oracle.failed(r.now, m, "not started")
		case !m.storedAnswerDue.IsZero(): // since its predecessor was started
		case m.phase == Outstanding && kept && m.parent != nil && m.parent.fromStore:
			m.storedAnswerDue = r.now.Add(HushOfMechanism)
		case m.phase == Outstanding && kept:
			m.storedAnswerDue = r.now.Add(Hush)
		}
	}
	r.oracle.applyTimers(r.now)
	if mustFail {
		r.execute(r.core.Failed(r.now, id, "not started"))
	}
	r.process(r.core.Started(r.now, id, Hears{}))
	r.compare()
}

func (r *comparison) pass(d time.Duration) {
	r.logf("%v pass", d)
	end := r.now.Add(d)
	for r.failure == "" {
		due := r.core.Wake()
		if due.IsZero() || due.After(end) {
			break
		}
		r.now = due
		r.oracle.applyTimers(r.now)
		r.process(r.core.Tick(r.now))
		r.compare()
	}
	r.now = end
	if r.failure == "" {
		r.compare()
	}
}
