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
	"github.com/understudy-lb/understudy/internal/printable"
)

// topic holds the resources of one type. client.serial guards it.
type topic struct {
	*Type
	client   *client
	subs     *ads.Subscriptions
	watchers map[string]map[*watch]bool
	timers   map[ads.Timer]*time.Timer
	requests *mailbox // mailbox for requests on the current stream; nil between streams
	held     *held
	rejected string
	versions map[string]string
	passedOn map[string]passedOn
	ttl      sync.Once

	// silent holds, by resource, the outages of a server that is reachable but has sent nothing since
	// the resource was requested.
	silent map[string]*Outage
}

// watch is a map key, because a Watcher need not be comparable.
type watch struct{ Watcher }

func (t *topic) watch(name string, handle *watch) {
	if o := cmp.Or(t.client.lost, t.silent[name]); o != nil {
		handle.Lost(o)
	}
	// The current state must be passed only to the new watcher.
	alone := map[string]map[*watch]bool{name: {handle: true}}
	t.do(t.subs.Watch(name, time.Since(t.client.news) < onItsWay), nil, alone)
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
		delete(t.passedOn, name)
	}
	t.do(t.subs.Unwatch(name), nil, t.watchers)
}

// refusal marks an error about a rejected resource, for the metrics.
type refusal struct{ error }

// Refused implements the interface of discovery.Refused.
func (refusal) Refused() bool { return true }

// do executes actions. If a response caused them, decoded holds its resources. watchers receive the
// result.
func (t *topic) do(a ads.Actions, decoded map[string]*Resource, watchers map[string]map[*watch]bool) {
	for _, timer := range a.Stop {
		if running, ok := t.timers[timer]; ok {
			running.Stop()
			delete(t.timers, timer)
		}
	}
	for _, timer := range a.Start {
		after := missingAfter
		if timer.Short {
			after = onItsWay
		}
		t.timers[timer] = time.AfterFunc(after, func() { t.client.serial.Do(func() { t.expired(timer) }) })
	}
	for _, d := range a.Deliver {
		t.deliver(d, decoded[d.Name], watchers[d.Name])
	}
	for _, f := range a.Fail {
		// Only the text of the error is passed on. If gRPC saw the status, it would fail calls with it,
		// even calls that wait for ready.
		err := fmt.Errorf("eds: no %s %q from %s: %v", t.noun, f.Name, t.client.server.URI, f.Err)
		if _, rejected := errors.AsType[ads.Rejected](f.Err); rejected {
			err = refusal{err}
		}
		for w := range watchers[f.Name] {
			w.Unknown(err, errors.Is(f.Err, ads.ErrMissing) && t.client.lost == nil)
		}
	}
	for _, f := range a.Kept {
		err := refusal{fmt.Errorf("eds: rejected the %s %q from %s: %v", t.noun, f.Name, t.client.server.URI, f.Err)}
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

// againAfter is the delay of a NACK for a version that was already rejected (docs/waits.md).
const againAfter = 5 * time.Second

type held struct {
	request *ads.Request
	timer   *time.Timer
}

// send puts a request into the mailbox, at once or later. The request replaces one that is already
// delayed, and takes over its deadline.
func (t *topic) send(r *ads.Request, later bool) {
	if t.held != nil {
		r = r.Replacing(t.held.request)
	}
	switch {
	case !later:
		t.drop()
		t.requests.put(r)
	case t.held != nil:
		t.held.request = r
	default:
		h := &held{request: r}
		t.held = h
		h.timer = time.AfterFunc(againAfter, func() {
			t.client.serial.Do(func() {
				if t.held == h {
					t.send(h.request, false)
				}
			})
		})
	}
}

func (t *topic) drop() {
	if t.held != nil {
		t.held.timer.Stop()
		t.held = nil
	}
}

type passedOn struct {
	body []byte
	read weak.Pointer[Resource] // weak, because only watchers should keep the resource in memory
}

// deliver passes a resource to watchers. The client keeps only the encoded form, which is ten times
// smaller. A later watcher shares the parsed form if another watcher still holds it.
func (t *topic) deliver(d ads.Named, r *Resource, watchers map[*watch]bool) {
	if last := t.passedOn[d.Name]; r == nil && bytes.Equal(last.body, d.Body) {
		r = last.read.Value()
	}
	if r == nil {
		var again ads.Resource
		if again, r = t.decode(&anypb.Any{TypeUrl: t.url, Value: d.Body}); again.Err != nil { // the resource was valid before, so decoding cannot fail
			logger.Errorf("eds: %s %q from %s: %v", t.noun, d.Name, t.client.server.URI, again.Err)
			return
		}
	}
	t.passedOn[d.Name] = passedOn{d.Body, weak.Make(r)}
	for w := range watchers {
		w.Resource(r, t.versions[d.Name])
	}
}

var errSilent = fmt.Errorf("no response within %v", missingAfter)

// expired handles the timeout of a resource. There are three cases. If the server has sent nothing
// during the timeout, it is unreachable for all watchers. If it has sent something, but not since
// the request, it is unreachable for the watchers of this resource. If it responded recently on the
// previous stream, it does not have the resource.
func (t *topic) expired(timer ads.Timer) {
	c := t.client
	delete(t.timers, timer)
	a := t.subs.Expired(timer)
	if len(a.Fail) > 0 && !timer.Short { // after a short timer, the resource has already been reported as missing
		logger.Warningf("eds: %s did not send %s %q within %v", c.server.URI, t.noun, timer.Name, missingAfter)
		c.count(missingMetric, 1)
	}
	silent := c.silent()
	if silent {
		c.lose(errSilent)
	} else if c.lost == nil && len(a.Fail) > 0 && errors.Is(a.Fail[0].Err, ads.ErrSilent) {
		t.setSilent(timer.Name, &Outage{Err: c.unreachable(errSilent), Since: time.Now(), partial: true})
	}
	t.do(a, nil, t.watchers)
	if !c.answered && !silent {
		t.do(t.subs.Await(), nil, t.watchers)
	}
}

func (t *topic) setSilent(name string, o *Outage) {
	if o == nil {
		delete(t.silent, name)
	} else {
		t.silent[name] = o
	}
	for w := range t.watchers[name] {
		w.Lost(o)
	}
}

// speaks is called when a response of any type has arrived, before the response is applied.
func (t *topic) speaks() {
	for _, o := range t.silent {
		o.over.Store(true)
	}
	t.do(t.subs.Again(), nil, t.watchers)
}

// logRejected logs a rejection unless the reason is the same as last time.
func (t *topic) logRejected(version, reason string) {
	if reason == t.rejected {
		return
	}
	t.rejected = reason
	logger.Warningf("eds: rejected version %q from %s: %s", version, t.client.server.URI, printable.Text(reason))
}
