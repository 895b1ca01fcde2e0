package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/xnet"
)

const (
	burst    = 50 * time.Millisecond // minimum delay of an update after an event, so that one update covers a burst of events
	longest  = time.Second / 2       // maximum delay; if updates are slow, ten times the duration of the last one is used instead
	first    = 60 * time.Second      // limit for the arrival of all initial slices (docs/waits.md)
	overtime = 30 * time.Second      // how long after its own timeout a watch is canceled
	silence  = 10 * time.Second      // a watch of at least this length without an event is suspicious: the server may have been restored from a backup
	asking   = 2 * time.Second
)

// watch follows the slices of Services. Only one goroutine uses it.
type watch struct {
	feed      *feed
	host      *host
	known     *known
	namespace string

	version   string // resource version of known, or ""
	heard     bool   // the current watch has sent something
	whole     bool   // the last request was a watch with initial events
	tokenRead bool   // the token has already been read again because of a 401
	unheard   int    // number of consecutive watches that ended at once without an event

	following time.Time // when all initial slices had arrived, or zero
}

func (w *watch) run(ctx context.Context) {
	defer w.host.release()
	for failures := 0; ctx.Err() == nil; {
		w.heard, w.whole, w.following = false, false, time.Time{}
		err := w.ask(ctx)
		if ctx.Err() != nil {
			return
		}
		lasted := !w.following.IsZero() && time.Since(w.following) > silence
		if w.unheard++; w.heard || lasted {
			w.unheard = 0
		}
		if lasted { // a watch that ends at once must not reset the backoff
			failures = 0
			w.tokenRead = w.tokenRead && !w.heard
		}
		delay, say := w.judge(err, failures, lasted)
		if say != nil {
			w.feed.fail(say)
		}
		failures++
		w.rest(ctx, delay)
	}
}

// rest waits before the next request. Deleted slices may expire in the meantime.
func (w *watch) rest(ctx context.Context, delay time.Duration) {
	end := time.Now().Add(delay)
	for next := w.known.next(); !next.IsZero() && next.Before(end); next = w.known.next() {
		if xnet.Rest(ctx, time.Until(next)); ctx.Err() != nil {
			return
		}
		w.known.expire(time.Now())
		w.feed.revise(w.known.snapshot())
	}
	xnet.Rest(ctx, time.Until(end))
}

// judge decides what to do after the end of a watch or a failed request. It returns the delay
// before the next request, and the error to report or nil.
func (w *watch) judge(err error, failures int, lasted bool) (delay time.Duration, say error) {
	if failures > 0 {
		delay = xnet.Backoff(failures-1, rand.Float64())
	}
	s, refused := errors.AsType[*status](err)
	if !refused && !w.heard && lasted {
		w.version = "" // the server may have been restored from a backup (kubernetes 107457)
	}
	switch {
	case err == nil && w.unheard > 1:
		return delay, errors.New("the API server ends each watch at once")
	case !refused:
		return delay, err
	case s.Code == http.StatusGone, s.tooLarge():
		if w.version = ""; w.unheard > 1 {
			say = err
		}
		return delay, say
	case w.whole && !w.heard && (s.Code == http.StatusBadRequest || s.Code == http.StatusUnprocessableEntity):
		w.host.plain.Store(true)
		return 0, nil
	case s.Code == http.StatusUnauthorized && !w.tokenRead && w.host.transport == nil:
		w.tokenRead = true
		w.host.expire()
		return delay, nil
	case s.Code == http.StatusForbidden:
		return max(delay, time.Second), discovery.Mistake(fmt.Errorf(
			"the account needs the verbs list and watch on endpointslices.discovery.k8s.io in namespace %s (understudy explain --rbac prints the Role): %w", w.namespace, err))
	}
	return max(delay, time.Second, s.after), err
}

// ask makes a watch request, after a list request if the server needs one. It returns when the
// watch ends.
func (w *watch) ask(ctx context.Context) (err error) {
	if w.namespace == "" {
		if w.namespace, err = w.host.home(); err != nil {
			return err
		}
	}
	if w.version == "" && w.host.plain.Load() {
		if err := w.list(ctx); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	seconds := 300 + rand.IntN(300)
	ask := url.Values{"watch": {"1"}, "allowWatchBookmarks": {"true"}, "timeoutSeconds": {strconv.Itoa(seconds)}}
	w.whole = w.version == ""
	if w.whole {
		ask.Set("sendInitialEvents", "true")
		ask.Set("resourceVersionMatch", "NotOlderThan")
	} else {
		ask.Set("resourceVersion", w.version)
	}
	dead := time.AfterFunc(time.Duration(seconds)*time.Second+overtime, cancel)
	defer dead.Stop()
	slow := time.AfterFunc(first, cancel) // limits the wait for the initial slices; stopped when they are complete
	defer slow.Stop()
	body, err := w.slices(ctx, ask)
	if err != nil {
		return late(ctx, err)
	}
	defer func() { _ = body.Close() }()
	from := events(ctx, body)
	if w.whole {
		if err := w.gather(ctx, from); err != nil {
			return err
		}
	}
	slow.Stop()
	w.following = time.Now()
	return w.follow(ctx, from)
}

func (w *watch) slices(ctx context.Context, ask url.Values) (io.ReadCloser, error) {
	ask.Set("labelSelector", serviceLabel+" in ("+w.feed.services+")")
	return w.host.get(ctx, fmt.Sprintf(slicesAPI, w.namespace), ask)
}

// late replaces err by a clearer error if ctx has ended.
func late(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errors.New("the API server did not answer in time")
	}
	return err
}

// closing returns a function that closes body. If ctx ends before that, body is closed at once,
// which ends a pending Read with any transport.
func closing(ctx context.Context, body io.Closer) func() {
	stop := context.AfterFunc(ctx, func() { _ = body.Close() })
	return func() {
		if stop() {
			_ = body.Close()
		}
	}
}

func (w *watch) list(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, first)
	defer cancel()
	body, err := w.slices(ctx, url.Values{})
	if err != nil {
		return late(ctx, err)
	}
	defer closing(ctx, body)()
	all := newCollection()
	clear(w.known.oddities)
	version, err := readList(body, func(sl *slice, problem error) { all.put(sl, problem, w.known.slices[sl.Metadata.Name]) })
	if err != nil {
		return late(ctx, fmt.Errorf("the API server's list does not parse: %w", err))
	}
	w.begin(ctx, version, all)
	return nil
}

// gather collects the initial slices, until a bookmark says that they are complete.
func (w *watch) gather(ctx context.Context, from <-chan *event) error {
	all := newCollection()
	clear(w.known.oddities)
	for {
		select {
		case <-ctx.Done():
			return errors.New("the API server did not send the initial slices in time")
		case e := <-from:
			switch {
			case errors.Is(e.err, io.EOF):
				return errors.New("the watch ended before the initial slices were complete")
			case e.err != nil:
				return late(ctx, e.err)
			}
			switch e.Type {
			case "ERROR":
				return &e.Object.status
			case "ADDED", "MODIFIED":
				all.put(&e.Object.slice, e.problem, w.known.slices[e.Object.Metadata.Name])
			case "DELETED":
				all.remove(e.Object.Metadata.Name)
			case "BOOKMARK":
				if e.Object.Metadata.Annotations.Ended != "true" {
					continue // before the initial events are complete, their versions are not in order
				}
				w.begin(ctx, e.Object.Metadata.ResourceVersion, all)
				return nil
			default:
				w.known.odd(e)
			}
		}
	}
}

// reach records the version of the known slices. A version that is too long for a URL is ignored.
func (w *watch) reach(version string) {
	if len(version) > maxText {
		version = ""
	}
	w.version = version
}

func (w *watch) begin(ctx context.Context, version string, all *collection) {
	w.reach(version)
	w.heard = true
	w.known.replace(all, time.Now())
	w.tell(ctx)
}

func (w *watch) follow(ctx context.Context, from <-chan *event) error {
	var due, expired <-chan time.Time
	pause := burst
	again := func() {
		due, expired = nil, nil
		if next := w.known.next(); !next.IsZero() {
			expired = time.After(time.Until(next))
		}
	}
	defer func() {
		if due != nil {
			w.tell(ctx)
		}
	}()
	for again(); ; {
		select {
		case <-ctx.Done():
			return errors.New("the API server has been silent for too long")
		case <-expired:
			w.tell(ctx)
			again()
		case <-due:
			began := time.Now()
			w.tell(ctx)
			pause = min(max(burst, 10*time.Since(began)), longest)
			again()
		case e := <-from:
			changed, err := w.take(e)
			switch {
			case errors.Is(err, io.EOF):
				return nil
			case err != nil:
				return late(ctx, err)
			case changed && due == nil:
				due = time.After(pause)
			case e.Type == "BOOKMARK" && due == nil:
				w.feed.confirm()
			}
		}
	}
}

// take processes an event. It reports whether the feed needs an update.
func (w *watch) take(e *event) (changed bool, err error) {
	if e.err != nil {
		return false, e.err
	}
	of := e.Object.Metadata
	switch e.Type {
	case "ERROR":
		return false, &e.Object.status
	case "ADDED", "MODIFIED":
		w.known.change(&e.Object.slice, e.problem)
	case "DELETED":
		w.known.remove(of.Name, time.Now())
	case "BOOKMARK":
	default:
		return w.known.odd(e), nil
	}
	w.heard = true
	if of.ResourceVersion != "" {
		w.reach(of.ResourceVersion)
	}
	return e.Type != "BOOKMARK", nil
}

// tell passes the known slices to the feed, except those that have expired.
func (w *watch) tell(ctx context.Context) {
	w.known.expire(time.Now())
	s := w.known.snapshot()
	if len(s.there)+len(s.left) == 0 {
		s.why = w.why(ctx)
	}
	w.feed.update(s)
}
