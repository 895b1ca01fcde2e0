package rehearse

import (
	"fmt"
	"slices"
	"strings"

	"github.com/understudy-lb/understudy/internal/rehearse"
)

// A scenario is a row of the report: a world with a fault.
type scenario struct {
	name    string
	world   rehearse.World
	outcome *rehearse.Outcome
}

// Each of these is played in one priority at a time, and then in two at once.
var faults = []struct {
	name   string
	fault  rehearse.Fault
	factor float64
}{
	{"killed", rehearse.Killed, 0},
	{"drained", rehearse.Drained, 0},
	{"hangs", rehearse.Hangs, 0},
	{"unreachable", rehearse.Unreachable, 0},
	{"errors", rehearse.Errors, 0},
	{"half the errors", rehearse.Errors, 0.5},
	{"slower by 4", rehearse.Slow, 4},
	{halfGone, rehearse.Killed, 0},
	{"capacity halved", rehearse.Fewer, 0.5},
}

const halfGone = "half the endpoints gone"

func events(w *rehearse.World, priority, fault int) (list []rehearse.Event) {
	f := faults[fault]
	e := rehearse.Event{From: faultFrom, To: faultTo, Priority: priority, Server: rehearse.All, Fault: f.fault, Factor: f.factor}
	if f.name != halfGone {
		return []rehearse.Event{e}
	}
	for i := range (len(w.Priorities[priority]) + 1) / 2 {
		e.Server = i
		list = append(list, e)
	}
	return list
}

// The order is: nothing wrong, each fault in each priority, load of 0.9, 1.1 and 1.5 times what the
// first priority can handle, each fault in two priorities at once, and finally a restart of all
// clients.
func scenariosFor(w rehearse.World) (list []*scenario) {
	add := func(name string, change func(*rehearse.World)) {
		s := &scenario{name: name, world: w}
		change(&s.world)
		list = append(list, s)
	}
	add("nothing wrong", func(*rehearse.World) {})
	for p := range w.Priorities {
		for f := range faults {
			add(fmt.Sprintf("p%d %s", p, faults[f].name), func(w *rehearse.World) { w.Events = events(w, p, f) })
		}
	}
	for _, load := range []float64{0.9, 1.1, 1.5} {
		add(fmt.Sprintf("%v × the load of p0", load), func(w *rehearse.World) { w.Rate = load * w.Capacity(0) })
	}
	for p := range len(w.Priorities) - 1 {
		for f := range faults {
			add(fmt.Sprintf("p%d, p%d %s", p, p+1, faults[f].name), func(w *rehearse.World) {
				w.Events = append(events(w, p, f), events(w, p+1, f)...)
			})
		}
	}
	last := len(w.Priorities) - 1
	restart := func(name string, fault rehearse.Fault, until int) {
		add("restart, "+name, func(w *rehearse.World) {
			w.Restart = faultFrom
			for p := range until + 1 {
				w.Events = append(w.Events, rehearse.Event{From: faultFrom, To: faultTo, Priority: p, Server: rehearse.All, Fault: fault})
			}
		})
	}
	restart("source of p0 silent", rehearse.SourceSilent, 0)
	if w.Entry(0) != w.Entry(last) {
		restart("source of p0 fails", rehearse.SourceFails, 0)
		restart("all sources silent", rehearse.SourceSilent, last)
	}
	return list
}

func chosen(all []*scenario, names []string) ([]*scenario, error) {
	if len(names) == 0 {
		return all, nil
	}
	var list []*scenario
	for _, name := range names {
		found := false
		for _, s := range all {
			if strings.HasPrefix(s.name, name) {
				found = true
				if !slices.Contains(list, s) {
					list = append(list, s)
				}
			}
		}
		if !found {
			return nil, fmt.Errorf("--fault %.100q: want the beginning of a row's name, such as %q or %q", name, all[0].name, all[1].name)
		}
	}
	return list, nil
}
