package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"google.golang.org/grpc/grpclog"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/backoff"
	"github.com/understudy-lb/understudy/internal/printable"
)

var logger = grpclog.Component("understudy")

const (
	maxEvent = 8 << 20               // bytes of one event
	maxList  = 256 << 20             // bytes of one list
	burst    = 50 * time.Millisecond // in which events become one update
	removal  = 10 * time.Second      // how long a deleted slice counts
	first    = 60 * time.Second      // in which all that there is has to come (docs/waits.md)
	overtime = 30 * time.Second      // after which a watch that should have ended is taken for dead
	ended    = "k8s.io/initial-events-end"
)

// source finds the endpoints of Services. It is the key by which it is shared, so it stays comparable.
type source struct {
	query
	server
}

// Check implements discovery.Source.
func (s source) Check(bool) error { return s.check() }

// Start implements discovery.Source.
func (s source) Start(r *discovery.Receiver) (discovery.Started, error) {
	if err := s.check(); err != nil {
		return discovery.Started{}, err
	}
	w := &watch{query: s.query, client: client{server: s.server, namespace: s.namespace}, receiver: r,
		known: map[string]*slice{}, left: map[string]*slice{}, until: map[string]time.Time{}}
	ctx, cancel := context.WithCancel(context.Background())
	r.Trying("watching the EndpointSlices of " + s.String())
	go w.run(ctx)
	return discovery.Started{Close: cancel}, nil
}

// watch follows the slices of Services. One goroutine uses it.
type watch struct {
	query
	client
	receiver *discovery.Receiver

	version   string // up to which known is true, "" for nothing
	plain     bool   // the server does not begin a watch with what there is
	known     map[string]*slice
	left      map[string]*slice    // deleted a moment ago
	until     map[string]time.Time // when those in left go
	synced    bool                 // known was true once
	confirmed time.Time
	heard     bool // something came since the watch began
	tokenRead bool // the token was read again for a 401
}

// run asks until ctx ends.
func (w *watch) run(ctx context.Context) {
	defer w.close()
	for failures := 0; ctx.Err() == nil; {
		w.heard = false
		began := time.Now()
		err := w.prepare()
		if err == nil {
			err = w.ask(ctx)
		}
		if ctx.Err() != nil {
			return
		}
		if w.heard {
			w.tokenRead = false
			if time.Since(began) > removal { // one that ends at once again and again is no success
				failures = 0
			}
		}
		delay, say := w.judge(err, failures, time.Since(began))
		if say != nil {
			w.fail(say)
		}
		failures++
		w.sleep(ctx, delay)
	}
}

// judge decides how to go on after err, and what to say of it. It changes what to ask for.
func (w *watch) judge(err error, failures int, took time.Duration) (delay time.Duration, say error) {
	if failures > 0 {
		delay = backoff.Delay(failures-1, rand.Float64())
	}
	var s *status
	switch {
	case err == nil: // it ended on time
		if !w.heard && took > removal {
			w.version = "" // the server may have gone back in time (kubernetes 107457)
		}
		return delay, nil
	case !errors.As(err, &s):
		return delay, err
	case s.Code == http.StatusGone, s.tooLarge():
		w.version = ""
		return delay, nil
	case !w.plain && w.version == "" && (s.Code == http.StatusBadRequest || s.Code == http.StatusUnprocessableEntity):
		w.plain = true
		return 0, nil
	case s.Code == http.StatusUnauthorized && !w.tokenRead && w.transport == nil:
		w.tokenRead, w.read = true, time.Time{}
		return 0, nil
	case s.Code == http.StatusForbidden:
		return max(delay, time.Second), discovery.Mistake(fmt.Errorf(
			"the account needs the verbs list and watch on endpointslices.discovery.k8s.io in namespace %s (understudy explain --rbac prints the Role): %w", w.client.namespace, err))
	}
	return max(delay, time.Second, s.after), err
}

// fail passes on why there is nothing, or nothing new.
func (w *watch) fail(err error) {
	if w.synced {
		w.receiver.Unconfirmed(err, w.confirmed)
		return
	}
	w.receiver.Fail(err)
}

// ask lists where it has to, and watches until the watch ends.
func (w *watch) ask(ctx context.Context) error {
	if w.version == "" && w.plain {
		if err := w.list(ctx); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	seconds := 300 + rand.IntN(300)
	ask := url.Values{"watch": {"1"}, "allowWatchBookmarks": {"true"}, "timeoutSeconds": {strconv.Itoa(seconds)}}
	limit := time.Duration(seconds)*time.Second + overtime
	fresh := w.version == ""
	if fresh {
		ask.Set("sendInitialEvents", "true")
		ask.Set("resourceVersionMatch", "NotOlderThan")
	} else {
		ask.Set("resourceVersion", w.version)
	}
	dead := time.AfterFunc(limit, cancel)
	defer dead.Stop()
	slow := time.AfterFunc(first, cancel) // until there is a body
	defer slow.Stop()
	body, err := w.get(ctx, w.services, ask)
	if err != nil {
		return late(ctx, err)
	}
	defer func() { _ = body.Close() }()
	if !fresh {
		slow.Stop()
	}
	return w.follow(ctx, body, fresh, slow)
}

// late says in words that a request took too long.
func late(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errors.New("the API server did not answer in time")
	}
	return err
}

// list takes all slices from one answer.
func (w *watch) list(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, first)
	defer cancel()
	body, err := w.get(ctx, w.services, url.Values{})
	if err != nil {
		return late(ctx, err)
	}
	defer func() { _ = body.Close() }()
	var all struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
		Items []*slice `json:"items"`
	}
	if err := json.NewDecoder(io.LimitReader(body, maxList)).Decode(&all); err != nil {
		return late(ctx, fmt.Errorf("the API server's list does not parse: %w", err))
	}
	if all.Metadata.ResourceVersion == "" {
		return errors.New("the API server's list has no resourceVersion")
	}
	fresh := make(map[string]*slice)
	for _, sl := range all.Items {
		if err := put(fresh, sl); err != nil {
			return err
		}
	}
	w.version = all.Metadata.ResourceVersion
	w.replace(fresh)
	w.tell()
	return nil
}

// put adds a slice, if it keeps the API's own bounds.
func put(all map[string]*slice, sl *slice) error {
	switch {
	case sl == nil || sl.Metadata.Name == "":
		return errors.New("the API server sends a slice without a name")
	case len(sl.Endpoints) > maxEndpoints || len(sl.Ports) > maxPorts:
		return fmt.Errorf("slice %s has %d endpoints and %d ports, want at most %d and %d",
			printable.Quote(sl.Metadata.Name), len(sl.Endpoints), len(sl.Ports), maxEndpoints, maxPorts)
	case len(all) >= maxSlices && all[sl.Metadata.Name] == nil:
		return fmt.Errorf("the API server sends more than %d slices", maxSlices)
	}
	all[sl.Metadata.Name] = sl
	return nil
}

// event is one of a watch.
type event struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object"`
	err    error
}

// events reads the events of a watch, each of which is bounded.
func events(ctx context.Context, body io.Reader) <-chan event {
	to := make(chan event)
	go func() {
		bounded := &io.LimitedReader{R: body}
		d := json.NewDecoder(bounded)
		for {
			var e event
			bounded.N = maxEvent
			e.err = d.Decode(&e)
			if e.err != nil && bounded.N <= 0 {
				e.err = fmt.Errorf("an event of more than %d MiB", maxEvent>>20)
			}
			select {
			case to <- e:
			case <-ctx.Done():
				return
			}
			if e.err != nil {
				return
			}
		}
	}()
	return to
}

// follow takes events until there are no more. Where the watch begins with all there is, that is
// gathered first.
func (w *watch) follow(ctx context.Context, body io.Reader, fresh bool, slow *time.Timer) error {
	into := w.known
	if fresh {
		into = make(map[string]*slice)
	}
	var due <-chan time.Time
	if len(w.until) > 0 {
		due = time.After(burst)
	}
	defer func() {
		if due != nil && !fresh {
			w.tell()
		}
	}()
	for from := events(ctx, body); ; {
		select {
		case <-ctx.Done():
			return errors.New("the API server has been silent for too long")
		case <-due:
			due = w.tell()
		case e := <-from:
			changed, end, err := w.take(e, into)
			switch {
			case errors.Is(err, io.EOF) && !fresh:
				return nil
			case errors.Is(err, io.EOF):
				return errors.New("the watch ended before all there is had come")
			case err != nil:
				return late(ctx, err)
			case end && fresh:
				slow.Stop()
				fresh = false
				w.replace(into)
				into = w.known
				due = w.tell()
			case changed && !fresh && (due == nil || len(w.until) > 0):
				due = time.After(burst)
			case !changed && !fresh && w.synced:
				w.confirmed = time.Now()
				w.receiver.Confirm()
			}
		}
	}
}

// take takes an event. It returns whether slices changed, and whether all there was has come.
func (w *watch) take(e event, into map[string]*slice) (changed, end bool, err error) {
	if e.err != nil {
		return false, false, e.err
	}
	var sl slice
	switch e.Type {
	case "ERROR":
		var s status
		if err := json.Unmarshal(e.Object, &s); err != nil {
			return false, false, fmt.Errorf("the API server's error does not parse: %w", err)
		}
		return false, false, &s
	case "ADDED", "MODIFIED", "DELETED", "BOOKMARK":
		if err := json.Unmarshal(e.Object, &sl); err != nil {
			return false, false, fmt.Errorf("an event does not parse: %w", err)
		}
	default:
		logger.Warningf("kubernetes: %s: an event of the unknown type %s is ignored", w.query, printable.Quote(printable.Line(e.Type, 40)))
		return false, false, nil
	}
	name, version := sl.Metadata.Name, sl.Metadata.ResourceVersion
	switch e.Type {
	case "BOOKMARK":
		end = sl.Metadata.Annotations[ended] == "true"
	case "DELETED":
		w.leave(into[name])
		delete(into, name)
	default:
		if err := put(into, &sl); err != nil {
			return false, false, err
		}
		if w.left[name] != nil {
			w.forget(name)
		}
	}
	w.heard = true
	// Until all there is has come, the versions are those of slices, in no order.
	if version != "" && (end || w.version != "") {
		w.version = version
	}
	return e.Type != "BOOKMARK", end, nil
}

// replace puts all there is in the place of what was known.
func (w *watch) replace(fresh map[string]*slice) {
	for name, sl := range w.known {
		if fresh[name] == nil {
			w.leave(sl)
		}
	}
	for name := range fresh {
		w.forget(name)
	}
	w.known, w.heard = fresh, true
}

// leave keeps a slice that was deleted for a while.
func (w *watch) leave(sl *slice) {
	if sl != nil && w.synced {
		w.left[sl.Metadata.Name], w.until[sl.Metadata.Name] = sl, time.Now().Add(removal)
	}
}

func (w *watch) forget(name string) {
	delete(w.left, name)
	delete(w.until, name)
}

// tell passes on what there is, and returns when to do that again because a deleted slice goes.
func (w *watch) tell() (again <-chan time.Time) {
	now, next := time.Now(), removal
	for name, at := range w.until {
		if left := at.Sub(now); left <= 0 {
			w.forget(name)
		} else {
			next = min(next, left)
		}
	}
	if len(w.until) > 0 {
		again = time.After(next)
	}
	w.synced, w.confirmed = true, now
	a, err := answer(w.query, w.known, w.left)
	if err != nil {
		w.receiver.Fail(err)
		return again
	}
	_ = w.receiver.Update(a) // where it is refused, another one has to come
	return again
}

// sleep waits, unless ctx ends.
func (w *watch) sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
