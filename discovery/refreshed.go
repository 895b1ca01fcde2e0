package discovery

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/core/names"
	"github.com/understudy-lb/understudy/internal/lb/serial"
)

// dnsPause is the default minimum time between two lookups of gRPC's DNS resolver. gRPC can change
// it only for the whole process. To look up a name earlier, this package builds a new resolver
// instead, which looks up the name immediately.
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
	w.calls.Do(func() { err = w.start(w.newRound(0)) })
	if err != nil {
		w.close()
		return Started{}, err
	}
	return Started{Close: w.close, ResolveNow: w.resolveNow}, nil
}

// refreshing runs a source and requests a re-resolution from it at an interval. Each answer or
// failure starts the timer for the next request, so lookups do not overlap. The source is never
// called from events, because it may answer on the caller's stack, and events must process the
// answer.
type refreshing struct {
	refreshed
	receiver     *Receiver
	closed       atomic.Bool
	currentRound atomic.Int64 // reports from earlier rounds are ignored

	calls   serial.Serializer // runs the calls of the source; guards the next field
	started Started           // the zero value between two rounds and after Close

	events     serial.Serializer // guards the fields below
	timer      serial.Timer
	lastResult time.Time
	lastFailed bool // if set, gRPC's resolver waits for its backoff before the next lookup
	lingering  names.Lingering[string, resolver.Endpoint]
}

// start starts the source for a new round. It must run in calls.
func (w *refreshing) start(r *Receiver) error {
	started, err := w.Source.Start(r)
	if err == nil {
		w.started = started
	}
	return err
}

func (w *refreshing) closeCurrent() {
	old := w.started
	w.started = Started{}
	old.close()
}

func (s *Started) close() {
	if s.Close != nil {
		s.Close()
	}
}

func (w *refreshing) close() {
	w.closed.Store(true)
	w.events.Run(w.timer.Stop)
	w.calls.Run(w.closeCurrent)
}

func (w *refreshing) resolveNow() {
	w.calls.Run(func() {
		if request := w.started.ResolveNow; request != nil {
			request()
		}
	})
}

// requestLookup is called when the interval has elapsed. It requests a re-resolution from the
// source. If the source would delay the lookup, or has no ResolveNow, requestLookup closes the
// source and starts it again, which begins a new round.
func (w *refreshing) requestLookup() {
	delayed := w.lastFailed || time.Since(w.lastResult) < dnsPause
	w.calls.Enqueue(func() {
		if w.closed.Load() {
			return
		}
		if request := w.started.ResolveNow; request != nil && !delayed {
			request()
			return
		}
		next := w.newRound(w.currentRound.Add(1))
		w.closeCurrent()
		if err := w.start(next); err != nil {
			next.Fail(err)
		}
	})
}

// recordResult records that the source has answered or failed, and starts the timer for the next
// lookup. It returns false if the round has ended.
func (w *refreshing) recordResult(round int64, failed bool) bool {
	if w.closed.Load() || round != w.currentRound.Load() {
		return false
	}
	w.lastResult, w.lastFailed = time.Now(), failed
	w.timer.Start(&w.events, w.refresh.Next(), w.requestLookup)
	return true
}

// round receives the reports that the source sends between one start and the next.
type round struct {
	*refreshing
	number int64
}

func (w *refreshing) newRound(number int64) *Receiver {
	r := round{w, number}
	return w.receiver.With(Hooks{Update: r.update, Fail: r.fail, Confirm: r.confirm, Mechanisms: r.sendMechanisms})
}

// update passes an answer to the receiver. Before that, it adds the addresses that the answer lacks
// but that are not removed yet. If the channel rejects the answer before update returns, update
// returns the error.
func (r round) update(a Answer) error {
	var updateErr atomic.Pointer[error]
	r.events.Run(func() {
		if !r.recordResult(r.number, false) {
			return
		}
		hasNoAddress := func(e resolver.Endpoint) bool { return len(e.Addresses) == 0 }
		if found := slices.DeleteFunc(slices.Clone(a.Resolved), hasNoAddress); len(found) > 0 || a.Empty {
			a.Resolved = r.lingering.Next(r.refresh.RemoveAfter, found, addressesOf)
		}
		if err := r.receiver.Update(a); err != nil {
			r.recordResult(r.number, true)
			updateErr.Store(&err)
		}
	})
	if err := updateErr.Load(); err != nil {
		return *err
	}
	return nil
}

func (r round) fail(err error) { r.forward(true, func() { r.receiver.Fail(err) }) }

func (r round) confirm() { r.forward(false, r.receiver.Confirm) }

func (r round) sendMechanisms(mechanisms []Mechanism) {
	r.forward(false, func() { r.receiver.Mechanisms(mechanisms) })
}

func (r round) forward(failed bool, report func()) {
	r.events.Run(func() {
		if r.recordResult(r.number, failed) {
			report()
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
