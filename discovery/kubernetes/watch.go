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
	"github.com/understudy-lb/understudy/internal/net/xnet"
)

const (
	minUpdateDelay = 50 * time.Millisecond // minimum delay of an update after an event, to combine events
	maxUpdateDelay = time.Second / 2       // maximum delay; the delay is ten times the duration of the last update
	initialTimeout = 60 * time.Second      // for all initial slices to arrive (docs/waits.md)
	cancelDelay    = 30 * time.Second      // time from the timeout of a watch to its cancellation
	minSilence     = 10 * time.Second      // longer watches without an event may mean that a backup was restored
	reasonTimeout  = 2 * time.Second
)

// watch follows the slices of Services. Only one goroutine uses it.
type watch struct {
	feed      *feed
	client    *apiClient
	known     *knownSlices
	namespace string

	version           string // resource version of known, or ""
	gotEvent          bool   // whether the current watch has sent an event
	withInitialEvents bool   // whether the last request asked for initial events
	tokenRead         bool   // whether the token was already read again after a 401
	emptyWatches      int    // number of consecutive watches that ended immediately without an event

	followingSince time.Time // when the initial slices were complete, or zero
}

func (w *watch) run(ctx context.Context) {
	defer w.client.release()
	for failures := 0; ctx.Err() == nil; {
		w.gotEvent, w.withInitialEvents, w.followingSince = false, false, time.Time{}
		err := w.watchOnce(ctx)
		if ctx.Err() != nil {
			return
		}
		lasted := !w.followingSince.IsZero() && time.Since(w.followingSince) > minSilence
		if w.emptyWatches++; w.gotEvent || lasted {
			w.emptyWatches = 0
		}
		if lasted { // a watch that ends immediately must not reset the backoff
			failures = 0
			w.tokenRead = w.tokenRead && !w.gotEvent
		}
		delay, reportErr := w.nextAttempt(err, failures, lasted)
		if reportErr != nil {
			w.feed.fail(reportErr)
		}
		failures++
		w.waitBeforeRetry(ctx, delay)
	}
}

// waitBeforeRetry waits before the next request. Deleted slices may expire in the meantime.
func (w *watch) waitBeforeRetry(ctx context.Context, delay time.Duration) {
	end := time.Now().Add(delay)
	for next := w.known.nextExpiry(); !next.IsZero() && next.Before(end); next = w.known.nextExpiry() {
		if xnet.Rest(ctx, time.Until(next)); ctx.Err() != nil {
			return
		}
		w.known.expire(time.Now())
		w.feed.revise(w.known.snapshot())
	}
	xnet.Rest(ctx, time.Until(end))
}

// nextAttempt decides how to continue after the end of a watch or a failed request. It returns the
// delay before the next request, and an error to report or nil.
func (w *watch) nextAttempt(err error, failures int, lasted bool) (delay time.Duration, reportErr error) {
	if failures > 0 {
		delay = xnet.Backoff(failures-1, rand.Float64())
	}
	s, isStatus := errors.AsType[*status](err)
	if !isStatus && !w.gotEvent && lasted {
		w.version = "" // the server may have been restored from a backup (kubernetes 107457)
	}
	switch {
	case err == nil && w.emptyWatches > 1:
		return delay, errors.New("the API server ends each watch at once")
	case !isStatus:
		return delay, err
	case s.Code == http.StatusGone, s.isVersionTooLarge():
		if w.version = ""; w.emptyWatches > 1 {
			reportErr = err
		}
		return delay, reportErr
	case w.withInitialEvents && !w.gotEvent && (s.Code == http.StatusBadRequest || s.Code == http.StatusUnprocessableEntity):
		w.client.noInitialEvents.Store(true)
		return 0, nil
	case s.Code == http.StatusUnauthorized && !w.tokenRead && w.client.transport == nil:
		w.tokenRead = true
		w.client.expireFiles()
		return delay, nil
	case s.Code == http.StatusForbidden:
		return max(delay, time.Second), discovery.Mistake(fmt.Errorf(
			"the account needs the verbs list and watch on endpointslices.discovery.k8s.io in namespace %s (docs/kubernetes.md has the Role): %w", w.namespace, err))
	}
	return max(delay, time.Second, s.retryAfter), err
}

// watchOnce makes a watch request, after a list request if the server needs one. It returns when
// the watch ends.
func (w *watch) watchOnce(ctx context.Context) (err error) {
	if w.namespace == "" {
		if w.namespace, err = w.client.podNamespace(); err != nil {
			return err
		}
	}
	if w.version == "" && w.client.noInitialEvents.Load() {
		if err := w.list(ctx); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	seconds := 300 + rand.IntN(300)
	query := url.Values{"watch": {"1"}, "allowWatchBookmarks": {"true"}, "timeoutSeconds": {strconv.Itoa(seconds)}}
	w.withInitialEvents = w.version == ""
	if w.withInitialEvents {
		query.Set("sendInitialEvents", "true")
		query.Set("resourceVersionMatch", "NotOlderThan")
	} else {
		query.Set("resourceVersion", w.version)
	}
	cancelTimer := time.AfterFunc(time.Duration(seconds)*time.Second+cancelDelay, cancel)
	defer cancelTimer.Stop()
	initialTimer := time.AfterFunc(initialTimeout, cancel) // stopped when the initial slices are complete
	defer initialTimer.Stop()
	body, err := w.slices(ctx, query)
	if err != nil {
		return timeoutError(ctx, err)
	}
	defer func() { _ = body.Close() }()
	events := readEvents(ctx, body)
	if w.withInitialEvents {
		if err := w.collectInitial(ctx, events); err != nil {
			return err
		}
	}
	initialTimer.Stop()
	w.followingSince = time.Now()
	return w.follow(ctx, events)
}

func (w *watch) slices(ctx context.Context, query url.Values) (io.ReadCloser, error) {
	query.Set("labelSelector", serviceLabel+" in ("+w.feed.services+")")
	return w.client.get(ctx, fmt.Sprintf(slicesAPI, w.namespace), query)
}

// timeoutError replaces err by a clearer error if ctx has ended.
func timeoutError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errors.New("the API server did not answer in time")
	}
	return err
}

// closeOnDone returns a function that closes body. If ctx ends before the function is called, body
// is closed immediately, which ends a pending Read with any transport.
func closeOnDone(ctx context.Context, body io.Closer) func() {
	stop := context.AfterFunc(ctx, func() { _ = body.Close() })
	return func() {
		if stop() {
			_ = body.Close()
		}
	}
}

func (w *watch) list(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, initialTimeout)
	defer cancel()
	body, err := w.slices(ctx, url.Values{})
	if err != nil {
		return timeoutError(ctx, err)
	}
	defer closeOnDone(ctx, body)()
	existing := newCollection()
	clear(w.known.eventNotes)
	version, err := readList(body, func(sl *slice, problem error) { existing.put(sl, problem, w.known.slices[sl.Metadata.Name]) })
	if err != nil {
		return timeoutError(ctx, fmt.Errorf("the API server's list does not parse: %w", err))
	}
	w.replaceSlices(ctx, version, existing)
	return nil
}

// collectInitial collects the initial slices, until a bookmark reports that they are complete.
func (w *watch) collectInitial(ctx context.Context, events <-chan *event) error {
	existing := newCollection()
	clear(w.known.eventNotes)
	for {
		select {
		case <-ctx.Done():
			return errors.New("the API server did not send the initial slices in time")
		case e := <-events:
			switch {
			case errors.Is(e.err, io.EOF):
				return errors.New("the watch ended before the initial slices were complete")
			case e.err != nil:
				return timeoutError(ctx, e.err)
			}
			switch e.Type {
			case "ERROR":
				return &e.Object.status
			case "ADDED", "MODIFIED":
				existing.put(&e.Object.slice, e.problem, w.known.slices[e.Object.Metadata.Name])
			case "DELETED":
				existing.remove(e.Object.Metadata.Name)
			case "BOOKMARK":
				if e.Object.Metadata.Annotations.Ended != "true" {
					continue // the versions of initial events are not in order
				}
				w.replaceSlices(ctx, e.Object.Metadata.ResourceVersion, existing)
				return nil
			default:
				w.known.noteEvent(e)
			}
		}
	}
}

// setVersion records the version of the known slices. It ignores a version that is too long for a
// URL.
func (w *watch) setVersion(version string) {
	if len(version) > maxText {
		version = ""
	}
	w.version = version
}

func (w *watch) replaceSlices(ctx context.Context, version string, existing *collection) {
	w.setVersion(version)
	w.gotEvent = true
	w.known.replace(existing, time.Now())
	w.send(ctx)
}

func (w *watch) follow(ctx context.Context, events <-chan *event) error {
	var updateC, expiryC <-chan time.Time
	pause := minUpdateDelay
	schedule := func() {
		updateC, expiryC = nil, nil
		if next := w.known.nextExpiry(); !next.IsZero() {
			expiryC = time.After(time.Until(next))
		}
	}
	defer func() {
		if updateC != nil {
			w.send(ctx)
		}
	}()
	for schedule(); ; {
		select {
		case <-ctx.Done():
			return errors.New("the API server has been silent for too long")
		case <-expiryC:
			w.send(ctx)
			schedule()
		case <-updateC:
			start := time.Now()
			w.send(ctx)
			pause = min(max(minUpdateDelay, 10*time.Since(start)), maxUpdateDelay)
			schedule()
		case e := <-events:
			changed, err := w.handleEvent(e)
			switch {
			case errors.Is(err, io.EOF):
				return nil
			case err != nil:
				return timeoutError(ctx, err)
			case changed && updateC == nil:
				updateC = time.After(pause)
			case e.Type == "BOOKMARK" && updateC == nil:
				w.feed.confirm()
			}
		}
	}
}

// handleEvent processes an event. It reports whether the feed needs an update.
func (w *watch) handleEvent(e *event) (changed bool, err error) {
	if e.err != nil {
		return false, e.err
	}
	metadata := e.Object.Metadata
	switch e.Type {
	case "ERROR":
		return false, &e.Object.status
	case "ADDED", "MODIFIED":
		w.known.update(&e.Object.slice, e.problem)
	case "DELETED":
		w.known.remove(metadata.Name, time.Now())
	case "BOOKMARK":
	default:
		return w.known.noteEvent(e), nil
	}
	w.gotEvent = true
	if metadata.ResourceVersion != "" {
		w.setVersion(metadata.ResourceVersion)
	}
	return e.Type != "BOOKMARK", nil
}

// send passes the known slices to the feed, except those that have expired.
func (w *watch) send(ctx context.Context) {
	w.known.expire(time.Now())
	s := w.known.snapshot()
	if len(s.existing)+len(s.deleted) == 0 {
		s.reason = w.reason(ctx)
	}
	w.feed.update(s)
}
