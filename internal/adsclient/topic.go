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

// topic holds the resources of one type on a client's stream. It is touched only in
// events of the client's serializer.
type topic struct {
	*Type
	client   *client
	subs     *ads.Subscriptions
	watchers map[string]map[*watch]bool // by name of the resource
	timers   map[ads.Timer]*time.Timer
	requests *mailbox            // of the current stream, or nil
	held     *held               // what waits to be sent on it, or nil
	rejected string              // logged last
	versions map[string]string   // of the responses that brought the resources that are watched
	passedOn map[string]passedOn // by name of the resource; of those that are watched
	ttl      sync.Once

	// silent has the resources of which the server has said nothing, nor anything else since it
	// was asked for them. For those who watch them it counts as lost.
	silent map[string]*Outage
}

// watch is one watcher; a watcher may watch twice.
type watch struct{ Watcher }

func (t *topic) watch(name string, handle *watch) {
	if o := cmp.Or(t.client.lost, t.silent[name]); o != nil {
		handle.Lost(o)
	}
	// What is known already is for the new watcher alone.
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

// refusal says, for metrics, that there was a resource, which was rejected.
type refusal struct{ error }

// Refused is what discovery.Refused has.
func (refusal) Refused() bool { return true }

// do carries out what was decided, and tells watchers. decoded holds what the
// response brought that led to it, if one did.
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
		// The reason may be the status of the stream. gRPC would end the calls on a channel
		// with it, also those that wait for ready, so its text alone is passed on.
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

// againAfter is how long a NACK waits where that version was rejected before (docs/waits.md).
const againAfter = 5 * time.Second

// held is a request that waits.
type held struct {
	request *ads.Request
	timer   *time.Timer
}

// send puts a request into the mailbox, at once or later. It replaces one that waits, for no
// longer than that would have waited.
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

// drop forgets the request that waits.
func (t *topic) drop() {
	if t.held != nil {
		t.held.timer.Stop()
		t.held = nil
	}
}

// passedOn is a resource that its watchers have.
type passedOn struct {
	body []byte
	read weak.Pointer[Resource] // nil once no watcher has it any more
}

// deliver passes a resource on. Only its bytes are kept, which are a tenth of its
// size in memory. A watcher that comes later gets what others have; only where nobody has it
// any more it is decoded and read again.
func (t *topic) deliver(d ads.Named, r *Resource, watchers map[*watch]bool) {
	if last := t.passedOn[d.Name]; r == nil && bytes.Equal(last.body, d.Body) {
		r = last.read.Value()
	}
	if r == nil {
		var again ads.Resource
		if again, r = t.decode(&anypb.Any{TypeUrl: t.url, Value: d.Body}); again.Err != nil { // it was read before
			logger.Errorf("eds: %s %q from %s: %v", t.noun, d.Name, t.client.server.URI, again.Err)
			return
		}
	}
	t.passedOn[d.Name] = passedOn{d.Body, weak.Make(r)}
	for w := range watchers {
		w.Resource(r, t.versions[d.Name])
	}
}

var errSilent = fmt.Errorf("it said nothing within %v", missingAfter)

// expired notes that a resource did not come in time. A server that has been silent for as
// long counts as one that cannot be reached: for those who watch the resource, where it said
// something before it was asked for it, and else for all. One that spoke a moment ago, on the stream
// before, does not have the resource; if it is silent from now on, that is noticed later.
func (t *topic) expired(timer ads.Timer) {
	c := t.client
	delete(t.timers, timer)
	a := t.subs.Expired(timer)
	if len(a.Fail) > 0 && !timer.Short { // else it was missing before
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

// setSilent tells the watchers of a resource that the server is silent about it, or no longer is.
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

// speaks notes that the server is about to say something.
func (t *topic) speaks() {
	for _, o := range t.silent {
		o.over.Store(true)
	}
	t.do(t.subs.Again(), nil, t.watchers)
}

// logRejected logs a reason once, however often a server sends the same.
func (t *topic) logRejected(version, reason string) {
	if reason == t.rejected {
		return
	}
	t.rejected = reason
	logger.Warningf("eds: rejected version %q from %s: %s", version, t.client.server.URI, printable.Text(reason))
}
