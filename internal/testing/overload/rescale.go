package overload

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Rescaled returns the world with different numbers. Capacities, deadlines, clients and times are
// multiplied by random factors from the seed, and the load changes with the capacities. We haven't
// tuned our rules to such worlds, but the bounds should hold for them too.
func (w World) Rescaled(seed uint64) World {
	w = filled(w)
	r := rand.New(rand.NewPCG(seed, 7))
	between := func(low, high float64) float64 { return low + (high-low)*r.Float64() }
	// With several times the workers, queues get shorter, so half to three times is enough.
	workers, service, deadline, clients, length := between(0.5, 3), between(0.4, 2), between(0.85, 1.2), between(0.5, 2), between(0.8, 1.5)
	w.Name += " (rescaled)"
	before := w.capacity()
	var priorities [][]Server
	for _, p := range w.Priorities {
		p = slices.Clone(p)
		for i := range p {
			old := p[i].Workers
			p[i].Workers = max(1, int(float64(old)*workers+0.5))
			p[i].Limit = (p[i].Limit*p[i].Workers + old/2) / old
			p[i].Service = time.Duration(float64(p[i].Service) * service)
			p[i].Cold = time.Duration(float64(p[i].Cold) * length)
		}
		priorities = append(priorities, p)
	}
	w.Priorities = priorities
	scale := w.capacity() / before
	w.Load, w.Spike.Load = w.Load*scale, w.Spike.Load*scale
	w.Deadlines = slices.Clone(w.Deadlines)
	for i := range w.Deadlines {
		w.Deadlines[i] = time.Duration(float64(w.Deadlines[i]) * service * deadline)
	}
	before = float64(w.Clients)
	w.Clients = max(1, int(before*clients))
	// How many calls are lost depends on the load, and on the time it takes to notice something.
	w.Want.Lost = int(float64(w.Want.Lost) * scale * length)
	w.Want.Diverted = int(float64(w.Want.Diverted) * scale)
	w.Want.ClientLost *= max(1, scale*before/float64(w.Clients))
	return w.stretched(length, service*deadline)
}

func (w World) stretched(by, pause float64) World {
	// A pause must stay below the deadline, so it's scaled with that.
	longer := func(t time.Duration) time.Duration { return time.Duration(float64(t) * by) }
	span := func(s Span) Span { return Span{longer(s.From), longer(s.To)} }
	w.Length, w.From, w.Trouble, w.Spike.Span = longer(w.Length), longer(w.From), span(w.Trouble), span(w.Spike.Span)
	w.Events = slices.Clone(w.Events)
	for i, e := range w.Events {
		w.Events[i].From, w.Events[i].To = longer(e.From), longer(e.To)
		if e.Fault == Pause {
			w.Events[i].To = longer(e.From) + time.Duration(float64(e.To-e.From)*pause)
		}
	}
	w.Want.Recovery = longer(w.Want.Recovery)
	return w
}
