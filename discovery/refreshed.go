package discovery

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/core/names"
	"github.com/understudy-lb/understudy/internal/lb/serial"
)

// Refreshed returns a source that closes s and starts it again every r.Every, in addition to the
// re-resolutions that failed connections trigger. gRPC's DNS resolver, which delays re-resolutions,
// looks up its name at once when it is built. If an address is missing from an answer, it is kept
// until r.RemoveAfter consecutive answers lack it. The answers of s must set Resolved, and s must
// answer or fail after each start, as a FromResolver source for a DNS name does. If r.Every is 0,
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
	w.calls.Do(func() { err = w.restart() })
	if err != nil {
		w.close()
		return Started{}, err
	}
	return Started{Close: w.close, ResolveNow: w.resolveNow}, nil
}

// refreshing starts a source again at an interval. Each answer or failure starts the timer for the
// next start, so lookups do not overlap. The source is never called from events, because it may
// answer on the caller's stack, and events must process the answer.
type refreshing struct {
	refreshed
	receiver *Receiver
	closed   atomic.Bool
	round    atomic.Int64 // number of the last start; reports from earlier starts are ignored

	calls   serial.Serializer // runs the calls of the source; guards the next field
	started Started           // the zero value between two rounds and after Close

	events    serial.Serializer // guards the fields below
	timer     serial.Timer
	lingering names.Lingering[string, resolver.Endpoint]
}

// restart closes the source, if it was started, and starts it. It must run in calls.
func (w *refreshing) restart() error {
	round := w.round.Add(1)
	w.closeCurrent()
	started, err := w.Source.Start(w.receiver.With(Hooks{
		Update:     func(a Answer) error { return w.update(round, a) },
		Fail:       func(err error) { w.report(round, func() { w.receiver.Fail(err) }) },
		Confirm:    func() { w.report(round, w.receiver.Confirm) },
		Mechanisms: func(list []Mechanism) { w.report(round, func() { w.receiver.Mechanisms(list) }) },
	}))
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

func (w *refreshing) lookUpAgain() {
	w.calls.Enqueue(func() {
		if w.closed.Load() {
			return
		}
		if err := w.restart(); err != nil {
			w.report(w.round.Load(), func() { w.receiver.Fail(err) })
		}
	})
}

// report passes on a report of the source, and starts the timer for the next lookup, unless the
// round has ended.
func (w *refreshing) report(round int64, pass func()) {
	w.events.Run(func() {
		if !w.closed.Load() && round == w.round.Load() {
			w.timer.Start(&w.events, w.refresh.Next(), w.lookUpAgain)
			pass()
		}
	})
}

// update passes an answer to the receiver. Before that, it adds the addresses that the answer lacks
// but that are not removed yet. If the channel rejects the answer before update returns, update
// returns the error.
func (w *refreshing) update(round int64, a Answer) error {
	var updateErr atomic.Pointer[error]
	w.report(round, func() {
		hasNoAddress := func(e resolver.Endpoint) bool { return len(e.Addresses) == 0 }
		if found := slices.DeleteFunc(slices.Clone(a.Resolved), hasNoAddress); len(found) > 0 || a.Empty {
			a.Resolved = w.lingering.Next(w.refresh.RemoveAfter, found, addressesOf)
		}
		err := w.receiver.Update(a)
		updateErr.Store(&err)
	})
	if err := updateErr.Load(); err != nil {
		return *err
	}
	return nil
}

func addressesOf(e resolver.Endpoint) string {
	var b strings.Builder
	for _, a := range e.Addresses {
		fmt.Fprintf(&b, "%q %q,", a.Addr, a.ServerName)
	}
	return b.String()
}
