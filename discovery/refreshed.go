package discovery

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/core/names"
	"github.com/understudy-lb/understudy/internal/serial"
)

// dnsPause is the minimum time between two lookups of gRPC's DNS resolver. It is a setting of the
// whole process, so this package leaves it alone and builds a new resolver, which looks up at once.
const dnsPause = 30 * time.Second

// Refreshed returns a source that asks s again every r.Every, and when a connection fails. It keeps
// an address until r.RemoveAfter successive answers lack it. s must answer with plain endpoints
// whenever it is asked, like FromResolver with a DNS name. If r.Every is 0, Refreshed returns s.
func Refreshed(s Source, r Refresh) Source {
	if r.Every == 0 {
		return s
	}
	return refreshed{s, r}
}

type refreshed struct {
	Source
	refresh Refresh
}

// Start implements Source.
func (s refreshed) Start(r *Receiver) (Started, error) {
	w := &refreshing{refreshed: s, receiver: r}
	var err error
	w.calls.Do(func() { err = w.start(w.round(0)) })
	if err != nil {
		w.close()
		return Started{}, err
	}
	return Started{Close: w.close, ResolveNow: w.resolveNow}, nil
}

// refreshing asks a source again and again. Each answer or failure sets the timer of the next
// request, so that requests do not overlap. It calls the source outside events, because the source
// may answer on the caller's stack.
type refreshing struct {
	refreshed
	receiver *Receiver
	closed   atomic.Bool
	number   atomic.Int64 // the round whose answers count

	calls   serial.Serializer // serializes calls of the source; guards current
	current Started           // zero between two rounds and after Close

	events serial.Serializer // guards the fields below
	timer  serial.Timer
	last   time.Time // when the last answer came
	failed bool      // the last result was a failure, after which gRPC's resolvers back off
	known  names.Lingering[string, resolver.Endpoint]
}

// start begins a round. It runs within calls, as end does.
func (w *refreshing) start(r *Receiver) error {
	started, err := w.Source.Start(r)
	if err == nil {
		w.current = started
	}
	return err
}

// end ends a round.
func (w *refreshing) end() {
	old := w.current
	w.current = Started{}
	old.end()
}

// end closes the source of the round, if it was started.
func (s *Started) end() {
	if s.Close != nil {
		s.Close()
	}
}

// close ends the source.
func (w *refreshing) close() {
	w.closed.Store(true)
	w.events.Run(w.timer.Stop)
	w.calls.Run(w.end)
}

// resolveNow asks the source because a connection failed.
func (w *refreshing) resolveNow() {
	w.calls.Run(func() {
		if ask := w.current.ResolveNow; ask != nil {
			ask()
		}
	})
}

// due asks the source because the interval is over. If the source would not look up at once, or
// cannot be asked, due begins a new round.
func (w *refreshing) due() {
	soon := w.failed || time.Since(w.last) < dnsPause
	w.calls.Enqueue(func() {
		if w.closed.Load() {
			return
		}
		if ask := w.current.ResolveNow; ask != nil && !soon {
			ask()
			return
		}
		next := w.round(w.number.Add(1))
		w.end()
		if err := w.start(next); err != nil {
			next.Fail(err)
		}
	})
}

// answered records an answer or a failure and sets the timer. It reports whether the round still
// counts.
func (w *refreshing) answered(round int64, failed bool) bool {
	if w.closed.Load() || round != w.number.Load() {
		return false
	}
	w.last, w.failed = time.Now(), failed
	w.timer.Start(&w.events, w.refresh.Next(), w.due)
	return true
}

// round receives the results of the source between one start and the next.
type round struct {
	*refreshing
	number int64
}

// round returns the receiver of a round.
func (w *refreshing) round(number int64) *Receiver {
	r := round{w, number}
	return w.receiver.With(Hooks{Update: r.update, Fail: r.fail, Confirm: r.confirm, Parts: r.parts})
}

// update takes an answer and returns the channel's verdict as far as it is known at once.
func (r round) update(a Answer) error {
	var verdict atomic.Pointer[error]
	r.events.Run(func() {
		if !r.answered(r.number, false) {
			return
		}
		empty := func(e resolver.Endpoint) bool { return len(e.Addresses) == 0 }
		if found := slices.DeleteFunc(slices.Clone(a.Resolved), empty); len(found) > 0 || a.Empty {
			a.Resolved = r.known.Next(r.refresh.RemoveAfter, found, addressesOf)
		}
		if err := r.receiver.Update(a); err != nil {
			r.answered(r.number, true)
			verdict.Store(&err)
		}
	})
	if err := verdict.Load(); err != nil {
		return *err
	}
	return nil
}

func (r round) fail(err error) { r.say(true, func() { r.receiver.Fail(err) }) }

func (r round) confirm() { r.say(false, r.receiver.Confirm) }

func (r round) parts(parts []Mechanism) { r.say(false, func() { r.receiver.Parts(parts) }) }

// say passes a result on if the round still counts.
func (r round) say(failed bool, pass func()) {
	r.events.Run(func() {
		if r.answered(r.number, failed) {
			pass()
		}
	})
}

// addressesOf returns the addresses of an endpoint as one string that identifies it.
func addressesOf(e resolver.Endpoint) string {
	var b strings.Builder
	for _, a := range e.Addresses {
		fmt.Fprintf(&b, "%q %q,", a.Addr, a.ServerName)
	}
	return b.String()
}
