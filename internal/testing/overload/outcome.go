package overload

import (
	"fmt"
	"time"

	"github.com/understudy-lb/understudy/internal/rehearse"
)

// Outcome says what happened to the calls of a world that began after World.From.
type Outcome struct {
	Calls, Good, Lost int
	Refused           int // by the client, since no priority takes them
	Waited            int // lost while waiting for a connection
	Elsewhere         int // answered by any priority but the first
	Attempts          int

	Goodput   float64       // fraction of the load or the capacity, whichever is smaller
	Recovery  time.Duration // measured from the end of the trouble; negative if it never ends
	Diverted  int
	InTrouble int
	Next      time.Duration // from the start of the trouble to the first answer elsewhere
	Moves     float64

	world   World
	seconds []second
}

type second struct{ good, lost int }

func newOutcome(w World) Outcome {
	return Outcome{world: w, Next: forever, seconds: make([]second, int(w.Length.Seconds())+2)}
}

func Run(w World, seed uint64) Outcome {
	w = filled(w)
	o := newOutcome(w)
	clients := make([]rehearse.Mover, w.Clients)
	rehearse.Run(w.played(), seed, rehearse.Observer{Ended: func(c rehearse.Call) {
		if c.Began >= w.From {
			o.Attempts += c.Attempts
		}
		if c.End != rehearse.Answered {
			o.lost(c)
			return
		}
		o.answered(c)
		clients[c.Client].Note(c.Priority)
	}})
	moves := 0
	for _, c := range clients {
		moves += c.Moves
	}
	return o.finished(moves)
}

func (o *Outcome) answered(c rehearse.Call) {
	o.seconds[int(c.Began.Seconds())].good++
	trouble := o.world.Trouble
	if trouble.To > 0 && c.Began >= trouble.From && c.Priority > 0 {
		o.Diverted++
		o.Next = min(o.Next, c.Ended-trouble.From)
	}
	if c.Began < o.world.From {
		return
	}
	o.Calls++
	o.Good++
	if c.Priority > 0 {
		o.Elsewhere++
	}
}

func (o *Outcome) lost(c rehearse.Call) {
	o.seconds[int(c.Began.Seconds())].lost++
	if c.Began >= o.world.Trouble.From && o.world.Trouble.To > 0 {
		o.InTrouble++
	}
	if c.Began < o.world.From {
		return
	}
	o.Calls++
	o.Lost++
	switch c.End {
	case rehearse.Refused:
		o.Refused++
	case rehearse.Waited:
		o.Waited++
	}
}

func (o Outcome) finished(moves int) Outcome {
	w := o.world
	o.Goodput = float64(o.Good) / (w.Length - w.From).Seconds() / min(float64(o.Calls)/(w.Length-w.From).Seconds(), w.capacity())
	if w.Trouble.To > 0 {
		o.Recovery = o.recovery()
	}
	o.Moves = float64(moves) / float64(w.Clients) / (w.Length - w.From).Minutes()
	return o
}

func (o *Outcome) recovery() time.Duration {
	end := int(o.world.Trouble.To.Seconds())
	for i := end; i+3 <= int(o.world.Length.Seconds()); i++ {
		good, lost := 0, 0
		for _, s := range o.seconds[i : i+3] {
			good, lost = good+s.good, lost+s.lost
		}
		if 50*lost < good+lost {
			return time.Duration(i-end) * time.Second
		}
	}
	return -1
}

func (o Outcome) Missed() (missed []string) {
	want := o.world.Want
	check := func(bounded, kept bool, format string, args ...any) {
		if bounded && !kept {
			missed = append(missed, fmt.Sprintf(format, args...))
		}
	}
	calls := float64(max(1, o.Calls))
	check(want.Goodput > 0, o.Goodput >= want.Goodput, "goodput %.3f, want %v", o.Goodput, want.Goodput)
	check(want.Recovery > 0, o.Recovery >= 0 && o.Recovery <= want.Recovery, "recovery %v, want %v", o.Recovery, want.Recovery)
	check(want.Lost > 0, o.InTrouble <= want.Lost, "%d lost, want %d", o.InTrouble, want.Lost)
	perClient := float64(o.InTrouble) / float64(o.world.Clients)
	check(want.ClientLost > 0, perClient <= want.ClientLost, "%.1f lost by each client, want %v", perClient, want.ClientLost)
	check(want.Next > 0, o.Next <= want.Next, "the next priority answered after %v, want %v", o.Next, want.Next)
	elsewhere := float64(o.Elsewhere) / calls
	check(want.Elsewhere > 0, elsewhere <= want.Elsewhere, "%.2f %% elsewhere, want %.2f %%", 100*elsewhere, 100*want.Elsewhere)
	check(want.Diverted > 0, o.Diverted <= want.Diverted, "%d calls diverted, want %d", o.Diverted, want.Diverted)
	check(want.Attempts > 0, float64(o.Attempts)/calls <= want.Attempts, "%.2f attempts a call, want %v", float64(o.Attempts)/calls, want.Attempts)
	check(want.Moves > 0, o.Moves <= want.Moves, "%.2f moves a minute, want %v", o.Moves, want.Moves)
	check(want.None, o.Refused == 0, "%d refused, want none", o.Refused)
	check(want.Kept, o.Waited+o.Refused == 0, "%d lost while they waited and %d refused, want none", o.Waited, o.Refused)
	return missed
}
