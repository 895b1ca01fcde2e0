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

// dnsPause is how long gRPC's DNS resolver waits between two look-ups, however often it is
// asked. The setting is one for the whole process, so this package leaves it alone and
// builds a new resolver, which looks up at once.
const dnsPause = 30 * time.Second

// Refreshed returns a source that asks s again every r.Every, beside the requests that
// come when a connection fails. It keeps an address that is missing from an answer until
// r.RemoveAfter answers in a row lack it. s must give plain endpoints and answer when it
// is asked, as FromResolver does for a DNS name. Without Every, Refreshed returns s.
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

// refreshing is a source that is asked again. Each answer or failure sets the timer for
// the next question, so no question comes before the last answer. The source is called outside of
// events, because it may answer on the caller's stack.
type refreshing struct {
	refreshed
	receiver *Receiver
	closed   atomic.Bool
	number   atomic.Int64 // the round whose answers count

	calls   serial.Serializer // of the source; guards current
	current Started           // nothing between two rounds, and after Close

	events serial.Serializer // guards what follows
	timer  serial.Timer
	last   time.Time // when the last answer came
	failed bool      // the last was a failure: gRPC's resolvers then wait longer each time
	known  names.Lingering[string, resolver.Endpoint]
}

// start begins a round. It is a call of the source, as end is.
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

// end closes what was started.
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

// resolveNow asks because a connection failed.
func (w *refreshing) resolveNow() {
	w.calls.Run(func() {
		if ask := w.current.ResolveNow; ask != nil {
			ask()
		}
	})
}

// due asks because the interval is over. Where the source would not look up at once, or cannot be
// asked, it begins a new round, in which it is started again.
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

// answered notes an answer or a failure, and sets the timer. It reports whether the round
// still counts.
func (w *refreshing) answered(round int64, failed bool) bool {
	if w.closed.Load() || round != w.number.Load() {
		return false
	}
	w.last, w.failed = time.Now(), failed
	w.timer.Start(&w.events, w.refresh.Next(), w.due)
	return true
}

// round receives what the source says between one start and the next.
type round struct {
	*refreshing
	number int64
}

// round returns the receiver of a round.
func (w *refreshing) round(number int64) *Receiver {
	r := round{w, number}
	return w.receiver.With(Hooks{Update: r.update, Fail: r.fail, Confirm: r.confirm, Parts: r.parts})
}

// update takes an answer, and returns what the channel says of it, as far as that is known at once.
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

// say passes something on, if the round still counts.
func (r round) say(failed bool, pass func()) {
	r.events.Run(func() {
		if r.answered(r.number, failed) {
			pass()
		}
	})
}

// addressesOf returns the addresses of an endpoint as one string, which identifies it.
func addressesOf(e resolver.Endpoint) string {
	var b strings.Builder
	for _, a := range e.Addresses {
		fmt.Fprintf(&b, "%q %q,", a.Addr, a.ServerName)
	}
	return b.String()
}
