package rehearse

import (
	"context"
	"slices"
	"time"
)

type Outcome struct {
	Calls, Lost int
	Refused     int // lost calls that the client refused because every priority was full
	Attempts    int
	Moves       int
	Longest     time.Duration
	Normal      time.Duration // from the last fault until calls are answered as before; negative if that never happens
	Peak        []float64     // for each priority, the most attempts in any one second as a fraction of its capacity
	Seconds     []Second
}

// Second counts the calls that began in a given second: those that each priority answered, and
// those that were lost.
type Second struct {
	Answered []int
	Lost     int
}

// Play runs a world and returns what happened to its calls. If ctx is done, the run ends early and
// the outcome is meaningless.
func Play(ctx context.Context, w World, seed uint64) *Outcome {
	o := &Outcome{Peak: make([]float64, len(w.Priorities))}
	end := int(w.Length/time.Second) + 1
	arrivals := make([][]int, end)
	for i := range end {
		o.Seconds = append(o.Seconds, Second{Answered: make([]int, len(w.Priorities))})
		arrivals[i] = make([]int, len(w.Priorities))
	}
	lastAnswer, clients := time.Duration(0), make([]Mover, w.Clients)
	Run(w, seed, Observer{
		Stopped: func() bool { return ctx.Err() != nil },
		Attempted: func(now time.Duration, priority int) {
			if i := int(now / time.Second); i < end {
				arrivals[i][priority]++
			}
		},
		Ended: func(c Call) {
			o.Calls++
			o.Attempts += c.Attempts
			second := &o.Seconds[int(c.Began/time.Second)]
			if c.End != Answered {
				o.Lost++
				second.Lost++
				if c.End == Refused {
					o.Refused++
				}
				return
			}
			second.Answered[c.Priority]++
			o.Longest = max(o.Longest, c.Ended-lastAnswer)
			lastAnswer = c.Ended
			clients[c.Client].Note(c.Priority)
		},
	})
	o.Longest = max(o.Longest, w.Length-lastAnswer)
	for _, c := range clients {
		o.Moves += c.Moves
	}
	for p := range o.Peak {
		for _, second := range arrivals {
			o.Peak[p] = max(o.Peak[p], float64(second[p])/w.Capacity(p))
		}
	}
	o.Seconds = o.Seconds[:end-1]
	o.Normal = o.normal(&w)
	return o
}

// normal returns how long it took to get back to normal after the last fault. We're back to normal
// once there are three seconds in a row in which less than 2 % of the calls are lost and the first
// priority answers at least 90 % of what it used to.
func (o *Outcome) normal(w *World) time.Duration {
	begin, end := w.Length, time.Duration(0)
	for _, e := range w.Events {
		begin, end = min(begin, e.From), max(end, e.To)
	}
	before := o.sum(int(begin/time.Second)-10, int(begin/time.Second))
	for i := int(end / time.Second); i+3 <= len(o.Seconds) && end > 0; i++ {
		now := o.sum(i, i+3)
		if 50*now.Lost < 3+now.Total() && 27*before.Answered[0] <= 100*now.Answered[0] {
			return time.Duration(i)*time.Second - end
		}
	}
	if end == 0 {
		return 0
	}
	return -1
}

func (o *Outcome) sum(from, to int) Second {
	total := Second{Answered: make([]int, len(o.Peak))}
	for _, s := range o.Seconds[max(0, from):to] {
		total.Lost += s.Lost
		for p, n := range s.Answered {
			total.Answered[p] += n
		}
	}
	return total
}

func (s Second) Total() (n int) {
	for _, answered := range s.Answered {
		n += answered
	}
	return n + s.Lost
}

// Mover counts how often a client moves, i.e. starts to get at least eight of ten answers from a
// different priority.
type Mover struct {
	Moves int
	last  []int
	at    int
}

func (m *Mover) Note(priority int) {
	if m.last = append(m.last, priority); len(m.last) < 10 {
		return
	}
	slices.Sort(m.last)
	if most := m.last[5]; most != m.at && (m.last[2] == most && m.last[9] == most || m.last[1] == most && m.last[8] == most || m.last[0] == most && m.last[7] == most) {
		m.Moves++
		m.at = most
	}
	m.last = m.last[:0]
}
