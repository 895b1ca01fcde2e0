package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/net/xnet"
)

const (
	slicesAPI = "/apis/discovery.k8s.io/v1/namespaces/%s/endpointslices"

	minUpdateDelay   = 50 * time.Millisecond // we wait this long after an event so that we can combine several
	maxUpdateDelay   = time.Second / 2
	delayPerEndpoint = 20 * time.Microsecond // several times as long as an update takes
	initialTimeout   = 60 * time.Second      // how long the initial slices may take (docs/waits.md)
	cancelDelay      = 30 * time.Second      // extra time that a watch gets after its own timeout
	minSilence       = 10 * time.Second      // a watch without events for longer than this may mean that a backup was restored
)

var errNoAnswer = errors.New("the API server did not answer in time")

// watched identifies a watch and is the source of its snapshots. It can be shared by several
// targets.
type watched struct {
	server
	namespace string
	services  string
}

func (s watched) Start(r *discovery.Receiver) (discovery.Started, error) {
	ctx, cancel := context.WithCancel(context.Background())
	w := &watch{watched: s, receiver: r, client: clientOf(s.server), known: newKnownSlices()}
	go w.run(ctx)
	return discovery.Started{Close: cancel, Confirmed: w.confirmed}, nil
}

// Except for confirmed, only the watch's own goroutine may use it.
type watch struct {
	watched
	receiver    *discovery.Receiver
	client      *apiClient
	known       *knownSlices
	confirmedAt atomic.Value // time.Time
	doubt       error        // why known may be out of date, or nil
	nextExpiry  time.Time    // when the next deleted slice that we've passed on expires, or zero

	version        string           // resource version of known, or ""
	initial        *knownSlices     // what we have so far; nil once they're complete
	initialTimer   *time.Timer      // ends the watch if the initial slices are late
	updateC        <-chan time.Time // nil unless an update is due
	tokenRejected  bool             // we've already retried once
	gotEvent       bool             // there's been an event in the current watch
	followingSince time.Time        // when the initial slices were complete, or zero
}

func (w *watch) run(ctx context.Context) {
	defer w.client.release()
	for failures := 0; ctx.Err() == nil; failures++ {
		w.gotEvent, w.initial, w.followingSince = false, nil, time.Time{}
		err := w.watchOnce(ctx)
		if ctx.Err() != nil {
			return
		}
		if w.updateC != nil {
			w.send(ctx)
		}
		lasted := !w.followingSince.IsZero() && time.Since(w.followingSince) > minSilence
		if lasted { // a watch that ends right away must not reset the backoff
			failures, w.tokenRejected = 0, false
		}
		delay, reportErr := w.nextAttempt(err, failures, lasted)
		if reportErr != nil {
			w.fail(reportErr)
		}
		w.waitBeforeRetry(ctx, delay)
	}
}

func (w *watch) waitBeforeRetry(ctx context.Context, delay time.Duration) {
	// Deleted slices may expire while we're waiting, but those snapshots aren't confirmed.
	end := time.Now().Add(delay)
	for !w.nextExpiry.IsZero() && w.nextExpiry.Before(end) && xnet.Rest(ctx, time.Until(w.nextExpiry)) {
		w.nextExpiry = w.known.expire(time.Now())
		if w.pass(w.known.snapshot()); w.doubt != nil {
			w.fail(w.doubt)
		}
	}
	xnet.Rest(ctx, time.Until(end))
}

func (w *watch) nextAttempt(err error, failures int, lasted bool) (delay time.Duration, reportErr error) {
	// What we do next depends on the API server:
	//
	//	it ends the watch                               watch again
	//	it doesn't know our version (410, "too large")  get the initial slices again
	//	it doesn't support initial events (400, 422)    list first, from now on
	//	it rejects the pod's token (401) once           read the token again
	//	anything else                                   report it, and back off
	if failures > 0 {
		delay = xnet.Backoff(failures-1, rand.Float64())
	}
	s, isStatus := errors.AsType[*status](err)
	isGone := isStatus && (s.Code == http.StatusGone || s.isVersionTooLarge())
	if isGone || !isStatus && !w.gotEvent && lasted { // the server may have been restored from a backup while it was silent (kubernetes 107457)
		w.version = ""
	}
	switch {
	case err == nil && failures >= 2 && !w.gotEvent:
		return delay, errors.New("the API server ends each watch at once")
	case !isStatus:
		return delay, err
	case isGone && (failures < 2 || w.gotEvent):
		return delay, nil
	case w.initial != nil && !w.gotEvent && (s.Code == http.StatusBadRequest || s.Code == http.StatusUnprocessableEntity):
		w.client.noInitialEvents.Store(true)
		return 0, nil
	case s.Code == http.StatusUnauthorized && !w.tokenRejected && w.client.transport == nil:
		w.tokenRejected = true // it may have been replaced since we read it
		return delay, nil
	case s.Code == http.StatusForbidden:
		err = fmt.Errorf(
			"the account needs the verbs list and watch on endpointslices.discovery.k8s.io in namespace %s (docs/kubernetes.md has the Role): %w", w.namespace, err)
	}
	return max(delay, time.Second, s.retryAfter), err
}

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
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	seconds, late := 300+rand.IntN(300), errNoAnswer
	query := url.Values{"watch": {"1"}, "allowWatchBookmarks": {"true"}, "timeoutSeconds": {strconv.Itoa(seconds)}}
	if w.version != "" {
		query.Set("resourceVersion", w.version)
	} else {
		query.Set("sendInitialEvents", "true")
		query.Set("resourceVersionMatch", "NotOlderThan")
		w.initial, late = newKnownSlices(), errors.New("the API server did not send the initial slices in time")
	}
	silentC := time.After(time.Duration(seconds)*time.Second + cancelDelay)
	w.initialTimer = time.AfterFunc(initialTimeout, func() { cancel(late) })
	defer w.initialTimer.Stop()
	body, err := w.slices(ctx, query)
	if err == nil {
		if w.initial == nil {
			w.beginFollowing()
		}
		err = w.follow(ctx, readEvents(ctx, body), silentC)
	}
	return cmp.Or(context.Cause(ctx), err)
}

func (w *watch) slices(ctx context.Context, query url.Values) (io.Reader, error) {
	query.Set("labelSelector", serviceLabel+" in ("+w.services+")")
	return w.client.get(ctx, fmt.Sprintf(slicesAPI, w.namespace), query)
}

func (w *watch) list(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, initialTimeout, errNoAnswer)
	defer cancel()
	body, err := w.slices(ctx, url.Values{})
	if err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	existing := newCollection()
	version, err := readList(body, func(sl *slice, problem error) { existing.put(sl, problem, w.known.slices[sl.name]) })
	if err != nil {
		return cmp.Or(context.Cause(ctx), fmt.Errorf("the API server's list does not parse: %w", err))
	}
	w.replace(ctx, version, existing)
	return nil
}

func (w *watch) setVersion(version string) {
	// If it's too long, it won't fit into a URL.
	if len(version) > maxText {
		version = ""
	}
	w.version = version
}

func (w *watch) replace(ctx context.Context, version string, existing *collection) {
	w.setVersion(version)
	w.gotEvent = true
	w.known.replace(existing, time.Now())
	w.send(ctx)
}

func (w *watch) beginFollowing() {
	w.initial, w.followingSince = nil, time.Now()
	w.initialTimer.Stop()
}

func (w *watch) follow(ctx context.Context, events <-chan *event, silentC <-chan time.Time) error {
	for {
		var expiryC <-chan time.Time
		if w.initial == nil && !w.nextExpiry.IsZero() {
			expiryC = time.After(time.Until(w.nextExpiry))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-silentC:
			return errors.New("the API server has been silent for too long")
		case <-expiryC:
			w.send(ctx)
		case <-w.updateC:
			w.send(ctx)
		case e := <-events:
			switch err := w.handleEvent(ctx, e); {
			case errors.Is(err, io.EOF) && w.initial != nil:
				return errors.New("the watch ended before the initial slices were complete")
			case errors.Is(err, io.EOF):
				return nil
			case err != nil:
				return err
			}
		}
	}
}

func (w *watch) handleEvent(ctx context.Context, e *event) error {
	if e.err != nil {
		return e.err
	}
	metadata, to := &e.Object.Metadata, cmp.Or(w.initial, w.known)
	switch e.Type {
	case "ERROR":
		return &e.Object.status
	case "ADDED", "MODIFIED":
		to.put(e.Object.slice(), e.problem, w.known.slices[metadata.Name])
	case "DELETED":
		to.remove(metadata.Name, time.Now())
	case "BOOKMARK":
		if w.initial != nil && metadata.Annotations.Ended == "true" {
			w.replace(ctx, metadata.ResourceVersion, w.initial.collection)
			w.beginFollowing()
			return nil
		}
	default:
		if to.noteEvent(e) && w.initial == nil {
			w.scheduleUpdate()
		}
		return nil
	}
	if w.initial != nil {
		return nil // initial events aren't ordered by version
	}
	w.gotEvent = true
	if metadata.ResourceVersion != "" {
		w.setVersion(metadata.ResourceVersion)
	}
	switch {
	case e.Type != "BOOKMARK":
		w.scheduleUpdate()
	case w.updateC == nil:
		w.markConfirmed()
		w.receiver.Confirm()
	}
	return nil
}

func (w *watch) scheduleUpdate() {
	if w.updateC == nil {
		w.updateC = time.After(min(max(minUpdateDelay, time.Duration(w.known.endpoints)*delayPerEndpoint), maxUpdateDelay))
	}
}

func (w *watch) send(ctx context.Context) {
	w.updateC = nil
	w.nextExpiry = w.known.expire(time.Now())
	s := w.known.snapshot()
	if len(s.existing)+len(s.deleted) == 0 {
		s.reason = w.client.reason(ctx, w.namespace, w.services)
	}
	w.markConfirmed()
	w.pass(s)
}

func (w *watch) pass(s *snapshot) {
	w.receiver.Mechanisms([]discovery.Mechanism{{Name: w.services, Source: s}})
}

func (w *watch) markConfirmed() {
	w.confirmedAt.Store(time.Now())
	w.doubt = nil
}

// confirmed returns the last time at which we knew the last snapshot to be current, or zero.
func (w *watch) confirmed() time.Time {
	at, _ := w.confirmedAt.Load().(time.Time)
	return at
}

func (w *watch) fail(err error) {
	if at := w.confirmed(); at.IsZero() {
		w.receiver.Fail(err)
	} else {
		w.doubt = err
		w.receiver.Unconfirmed(err, at)
	}
}
