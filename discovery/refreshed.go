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

// dnsPause is the minimum time between two lookups of gRPC's DNS resolver. The setting is global,
// so this package does not change it. To look up a name earlier, it builds a new resolver, which
// looks up the name at once.
const dnsPause = 30 * time.Second

// Refreshed returns a source that requests a re-resolution from s every r.Every, in addition to the
// re-resolutions that failed connections trigger. If an address is missing from an answer, it is
// kept until r.RemoveAfter consecutive answers lack it. The answers of s must set Resolved, and s
// must answer each ResolveNow, as a FromResolver source for a DNS name does. If r.Every is 0,
// Refreshed returns s.
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

// refreshing runs a source and requests a re-resolution from it at an interval. Each answer or
// failure starts the timer for the next request, so lookups do not overlap. The source is never
// called inside events: it may answer on the caller's stack, and the answer must then run in an
// event.
type refreshing struct {
	refreshed
	receiver *Receiver
	closed   atomic.Bool
	number   atomic.Int64 // number of the current round; reports from earlier rounds are ignored

	calls   serial.Serializer // runs the calls of the source, one at a time; guards current
	current Started           // zero between two rounds and after Close

	events serial.Serializer // guards the fields below
	timer  serial.Timer
	last   time.Time
	failed bool // the last result was a failure, so gRPC's resolver waits for its backoff
	known  names.Lingering[string, resolver.Endpoint]
}

// start starts the source for a new round. The caller must run it in calls.
func (w *refreshing) start(r *Receiver) error {
	started, err := w.Source.Start(r)
	if err == nil {
		w.current = started
	}
	return err
}

func (w *refreshing) end() {
	old := w.current
	w.current = Started{}
	old.end()
}

func (s *Started) end() {
	if s.Close != nil {
		s.Close()
	}
}

func (w *refreshing) close() {
	w.closed.Store(true)
	w.events.Run(w.timer.Stop)
	w.calls.Run(w.end)
}

func (w *refreshing) resolveNow() {
	w.calls.Run(func() {
		if ask := w.current.ResolveNow; ask != nil {
			ask()
		}
	})
}

// due is called when the interval has elapsed. It requests a re-resolution from the source. If the
// source would delay the lookup, or has no ResolveNow, due closes the source and starts it again,
// which begins a new round.
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

// answered records that the source has answered or failed, and starts the timer for the next
// lookup. It returns false if the round is over.
func (w *refreshing) answered(round int64, failed bool) bool {
	if w.closed.Load() || round != w.number.Load() {
		return false
	}
	w.last, w.failed = time.Now(), failed
	w.timer.Start(&w.events, w.refresh.Next(), w.due)
	return true
}

// round receives the reports of the source from one start until the next one.
type round struct {
	*refreshing
	number int64
}

func (w *refreshing) round(number int64) *Receiver {
	r := round{w, number}
	return w.receiver.With(Hooks{Update: r.update, Fail: r.fail, Confirm: r.confirm, Parts: r.parts})
}

// update passes on an answer, together with the addresses that it lacks but that are not removed
// yet. If the channel rejects the answer before update returns, update returns the error.
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

func (r round) say(failed bool, pass func()) {
	r.events.Run(func() {
		if r.answered(r.number, failed) {
			pass()
		}
	})
}

func addressesOf(e resolver.Endpoint) string {
	var b strings.Builder
	for _, a := range e.Addresses {
		fmt.Fprintf(&b, "%q %q,", a.Addr, a.ServerName)
	}
	return b.String()
}
