package adsclient

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"sync"
	"time"
	"weak"

	"google.golang.org/protobuf/types/known/anypb"

	"github.com/understudy-lb/understudy/internal/core/ads"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

// topic holds the subscriptions to the resources of one type. client.serial guards all fields.
type topic struct {
	*Type
	client        *client
	subs          *ads.Subscriptions
	watchers      map[string]map[*watch]bool
	timers        map[ads.Timer]*time.Timer
	requests      *mailbox // mailbox for requests on the current stream; nil between streams
	delayed       *delayedRequest
	lastRejection string
	versions      map[string]string
	delivered     map[string]deliveredResource
	warnTTL       sync.Once

	// partialOutages has an entry for each resource that the server has not sent although it is
	// reachable: the server has sent nothing since the resource was requested.
	partialOutages map[string]*Outage
}

// watch wraps a Watcher. A *watch can be a map key, whereas a Watcher need not be comparable.
type watch struct{ Watcher }

func (t *topic) watch(name string, handle *watch) {
	if o := cmp.Or(t.client.outage, t.partialOutages[name]); o != nil {
		handle.Lost(o)
	}
	// The other watchers already have the current state.
	newWatcher := map[string]map[*watch]bool{name: {handle: true}}
	t.execute(t.subs.Watch(name, time.Since(t.client.lastClusters) < shortMissingAfter), nil, newWatcher)
	if t.watchers[name] == nil {
		t.watchers[name] = make(map[*watch]bool)
	}
	t.watchers[name][handle] = true
}

func (t *topic) unwatch(name string, handle *watch) {
	delete(t.watchers[name], handle)
	if len(t.watchers[name]) == 0 {
		delete(t.watchers, name)
		delete(t.versions, name)
		delete(t.delivered, name)
	}
	t.execute(t.subs.Unwatch(name), nil, t.watchers)
}

// rejectedError is an error about a rejected resource. The metrics count such errors separately.
type rejectedError struct{ error }

// Refused implements the interface of discovery.Refused.
func (rejectedError) Refused() bool { return true }

// execute executes the actions. If a response caused them, decoded holds the resources of the
// response. The results are sent to watchers, which holds the watchers of each resource name.
func (t *topic) execute(a ads.Actions, decoded map[string]*Resource, watchers map[string]map[*watch]bool) {
	for _, timer := range a.Stop {
		if running, ok := t.timers[timer]; ok {
			running.Stop()
			delete(t.timers, timer)
		}
	}
	for _, timer := range a.Start {
		after := missingAfter
		if timer.Short {
			after = shortMissingAfter
		}
		t.timers[timer] = time.AfterFunc(after, func() { t.client.serial.Do(func() { t.expired(timer) }) })
	}
	for _, d := range a.Deliver {
		t.deliver(d, decoded[d.Name], watchers[d.Name])
	}
	for _, f := range a.Fail {
		// The error must not wrap f.Err: if f.Err is a status error, gRPC would fail calls with this
		// status, including wait-for-ready calls.
		err := fmt.Errorf("eds: no %s %q from %s: %v", t.noun, f.Name, t.client.server.URI, f.Err)
		if _, rejected := errors.AsType[ads.Rejected](f.Err); rejected {
			err = rejectedError{err}
		}
		for w := range watchers[f.Name] {
			w.Unknown(err, errors.Is(f.Err, ads.ErrMissing) && t.client.outage == nil)
		}
	}
	for _, f := range a.Kept {
		err := rejectedError{fmt.Errorf("eds: rejected the %s %q from %s: %v", t.noun, f.Name, t.client.server.URI, f.Err)}
		for w := range watchers[f.Name] {
			w.Rejected(err)
		}
	}
	if a.Send != nil && t.requests != nil {
		t.send(a.Send, a.Later)
	}
	if a.Renew && t.client.current != nil {
		t.client.current.cancel(errRenewed)
	}
}

// repeatedNACKDelay is the delay of a NACK for a version that was already rejected (docs/waits.md).
const repeatedNACKDelay = 5 * time.Second

type delayedRequest struct {
	request *ads.Request
	timer   *time.Timer
}

// send puts a request into the mailbox. If later is true, it does so after repeatedNACKDelay. The
// request replaces an already delayed request, and the timer of that request continues to run.
func (t *topic) send(r *ads.Request, later bool) {
	if t.delayed != nil {
		r = r.Replacing(t.delayed.request)
	}
	switch {
	case !later:
		t.dropDelayed()
		t.requests.put(r)
	case t.delayed != nil:
		t.delayed.request = r
	default:
		h := &delayedRequest{request: r}
		t.delayed = h
		h.timer = time.AfterFunc(repeatedNACKDelay, func() {
			t.client.serial.Do(func() {
				if t.delayed == h {
					t.send(h.request, false)
				}
			})
		})
	}
}

func (t *topic) dropDelayed() {
	if t.delayed != nil {
		t.delayed.timer.Stop()
		t.delayed = nil
	}
}

type deliveredResource struct {
	body     []byte
	resource weak.Pointer[Resource] // only watchers should keep the resource in memory
}

// deliver passes a resource to watchers. The client keeps only the encoded resource, which is ten
// times smaller than the parsed one. A later watcher gets the same parsed resource if another
// watcher still holds it.
func (t *topic) deliver(d ads.Named, r *Resource, watchers map[*watch]bool) {
	if last := t.delivered[d.Name]; r == nil && bytes.Equal(last.body, d.Body) {
		r = last.resource.Value()
	}
	if r == nil {
		var redecoded ads.Resource
		// The resource was decoded successfully before, so an error is not expected.
		if redecoded, r = t.decode(&anypb.Any{TypeUrl: t.url, Value: d.Body}); redecoded.Err != nil {
			logger.Errorf("eds: %s %q from %s: %v", t.noun, d.Name, t.client.server.URI, redecoded.Err)
			return
		}
	}
	t.delivered[d.Name] = deliveredResource{d.Body, weak.Make(r)}
	for w := range watchers {
		w.Resource(r, t.versions[d.Name])
	}
}

var errSilent = fmt.Errorf("no response within %v", missingAfter)

// expired handles the timeout of a resource. If the server has sent no response for missingAfter,
// it counts as unreachable for all watchers. If its last response arrived before the request for
// the resource, it counts as unreachable for the watchers of this resource only. Otherwise, the
// server does not have the resource.
func (t *topic) expired(timer ads.Timer) {
	c := t.client
	delete(t.timers, timer)
	a := t.subs.Expired(timer)
	if len(a.Fail) > 0 && !timer.Short { // a short timer is used only for a resource that was logged as missing before
		logger.Warningf("eds: %s did not send %s %q within %v", c.server.URI, t.noun, timer.Name, missingAfter)
		c.count(missingMetric, 1)
	}
	silent := c.silent()
	if silent {
		c.recordOutage(errSilent)
	} else if c.outage == nil && len(a.Fail) > 0 && errors.Is(a.Fail[0].Err, ads.ErrSilent) {
		t.setPartialOutage(timer.Name, &Outage{Err: c.unreachableError(errSilent), Since: time.Now(), partial: true})
	}
	t.execute(a, nil, t.watchers)
	if !c.answered && !silent {
		t.execute(t.subs.RestartTimers(), nil, t.watchers)
	}
}

func (t *topic) setPartialOutage(name string, o *Outage) {
	if o == nil {
		delete(t.partialOutages, name)
	} else {
		t.partialOutages[name] = o
	}
	for w := range t.watchers[name] {
		w.Lost(o)
	}
}

// serverResponded is called when a response of any type has arrived, before the response is
// applied.
func (t *topic) serverResponded() {
	for _, o := range t.partialOutages {
		o.recovered.Store(true)
	}
	t.execute(t.subs.ServerResponds(), nil, t.watchers)
}

// logRejected logs a rejection unless the reason is the same as last time.
func (t *topic) logRejected(version, reason string) {
	if reason == t.lastRejection {
		return
	}
	t.lastRejection = reason
	logger.Warningf("eds: rejected version %q from %s: %s", version, t.client.server.URI, printable.Text(reason))
}
