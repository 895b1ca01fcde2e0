package discovery

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/linger"
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
func (s refreshed) Start(r Receiver) (Watch, error) {
	w := &refreshing{refreshed: s, receiver: r}
	w.asking.Lock()
	defer w.asking.Unlock()
	watch, err := s.Source.Start(&round{w, 0})
	if err != nil {
		w.Close()
		return nil, err
	}
	w.mu.Lock()
	w.watch = watch
	w.mu.Unlock()
	return w, nil
}

// refreshing is a source that is asked again. Each answer or failure sets the timer for
// the next question, so no question comes before the last answer.
type refreshing struct {
	refreshed
	receiver Receiver

	asking sync.Mutex // one question at a time

	mu     sync.Mutex
	watch  Watch
	number int // the round whose answers count
	closed bool
	timer  *time.Timer
	last   time.Time // when the last answer came
	failed bool      // the last was a failure: gRPC's resolvers then wait longer each time
	known  linger.Set[string, resolver.Endpoint]
}

// Close implements Watch.
func (w *refreshing) Close() {
	w.mu.Lock()
	w.closed = true
	watch := w.watch
	w.watch = nil
	if w.timer != nil {
		w.timer.Stop()
	}
	w.mu.Unlock()
	if watch != nil {
		watch.Close()
	}
}

// ResolveNow asks because a connection failed.
func (w *refreshing) ResolveNow() {
	w.asking.Lock()
	defer w.asking.Unlock()
	if watch := w.open(); watch != nil {
		resolveNow(watch)
	}
}

// resolveNow reports whether watch can be asked.
func resolveNow(watch Watch) bool {
	asked, ok := watch.(interface{ ResolveNow() })
	if ok {
		asked.ResolveNow()
	}
	return ok
}

// open returns the current watch, or nil after Close.
func (w *refreshing) open() Watch {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.watch
}

// due asks because the interval is over.
func (w *refreshing) due() {
	w.asking.Lock()
	defer w.asking.Unlock()
	w.mu.Lock()
	watch := w.watch
	soon := w.failed || time.Since(w.last) < dnsPause
	w.mu.Unlock()
	if watch == nil || !soon && resolveNow(watch) {
		return
	}
	w.restart(watch)
}

// restart begins a new round, in which the source looks up at once.
func (w *refreshing) restart(old Watch) {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return
	}
	w.number++
	next := &round{w, w.number}
	w.watch = nothing{}
	w.mu.Unlock()
	old.Close()
	watch, err := w.Source.Start(next)
	if err != nil {
		next.Fail(err)
		return
	}
	w.mu.Lock()
	closed := w.closed
	if !closed {
		w.watch = watch
	}
	w.mu.Unlock()
	if closed {
		watch.Close()
	}
}

// nothing stands for the watch between two rounds.
type nothing struct{}

func (nothing) Close() {}

// answered notes an answer or a failure, and sets the timer. It returns whether the round
// still counts.
func (w *refreshing) answered(round int, failed bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || round != w.number {
		return false
	}
	w.last, w.failed = time.Now(), failed
	if w.timer != nil {
		w.timer.Stop()
	}
	w.timer = time.AfterFunc(w.refresh.Next(), w.due)
	return true
}

// round receives what the source says between one start and the next.
type round struct {
	*refreshing
	number int
}

// Update implements Receiver.
func (r *round) Update(a Answer) error {
	if !r.answered(r.number, false) {
		return nil
	}
	empty := func(e resolver.Endpoint) bool { return len(e.Addresses) == 0 }
	if found := slices.DeleteFunc(slices.Clone(a.Endpoints), empty); len(found) > 0 || a.Empty {
		r.mu.Lock()
		a.Endpoints = r.known.Next(r.refresh.RemoveAfter, found, addressesOf)
		r.mu.Unlock()
	}
	err := r.receiver.Update(a)
	if err != nil {
		r.answered(r.number, true)
	}
	return err
}

// Fail implements Receiver.
func (r *round) Fail(err error) {
	if r.answered(r.number, true) {
		r.receiver.Fail(err)
	}
}

// Parts implements Receiver.
func (r *round) Parts(parts []Part) {
	if r.answered(r.number, false) {
		r.receiver.Parts(parts)
	}
}

// addressesOf returns the addresses of an endpoint as one string, which identifies it.
func addressesOf(e resolver.Endpoint) string {
	var b strings.Builder
	for _, a := range e.Addresses {
		fmt.Fprintf(&b, "%q %q,", a.Addr, a.ServerName)
	}
	return b.String()
}
