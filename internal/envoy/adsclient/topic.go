package adsclient

import (
	"cmp"
	"errors"
	"fmt"
	"sync"
	"time"
	"unicode/utf8"
	"weak"

	"google.golang.org/protobuf/types/known/anypb"

	"github.com/understudy-lb/understudy/internal/core/ads"
	"github.com/understudy-lb/understudy/internal/lb/serial"
)

// topic holds the subscriptions to the resources of one type. client.serial guards all fields.
type topic struct {
	*Type
	index         int // in client.topics
	client        *client
	subs          *ads.Subscriptions
	watchers      map[string]map[Watcher]bool
	timers        map[ads.Timer]*time.Timer
	delayed       *ads.Request // a repeated NACK that is sent when delay fires, or nil
	delay         serial.Timer
	lastRejection string
	delivered     map[string]weak.Pointer[Resource] // the last parsed version; only watchers should keep it in memory
	warnTTL       sync.Once

	// silences has an entry for each resource that the server has not sent although it is reachable:
	// the server has sent nothing since the resource was requested.
	silences map[string]*Outage
}

// watch subscribes to a resource until cancel is called.
func (c *client) watch(typ *Type, name string, w Watcher) (cancel func()) {
	if !utf8.ValidString(name) { // a request with an invalid name would end the stream of all watchers
		w.Unknown(fmt.Errorf("eds: no %s %q from %s: its name is not UTF-8", typ.noun, name, c.server.URI), true)
		return func() {}
	}
	t := c.topic(typ.url)
	c.serial.Do(func() {
		if o := cmp.Or(c.outage, t.silences[name]); o != nil {
			w.Lost(o)
		}
		all := t.watchers[name]
		if all == nil {
			all = make(map[Watcher]bool)
		}
		t.watchers[name] = map[Watcher]bool{w: true} // the others already have the current state
		t.execute(t.subs.Watch(name, time.Since(c.lastClusters) < shortMissingAfter))
		all[w] = true
		t.watchers[name] = all
	})
	return func() { c.serial.Do(func() { t.unwatch(name, w) }) }
}

func (t *topic) unwatch(name string, w Watcher) {
	delete(t.watchers[name], w)
	if len(t.watchers[name]) == 0 {
		delete(t.watchers, name)
		delete(t.delivered, name)
	}
	t.execute(t.subs.Unwatch(name))
}

// rejectedError is an error about a rejected resource. The metrics count such errors separately.
type rejectedError struct{ error }

// Refused makes metrics count the failure as refused.
func (rejectedError) Refused() bool { return true }

func (t *topic) execute(a ads.Actions) {
	for _, timer := range a.Stop {
		t.timers[timer].Stop()
		delete(t.timers, timer)
	}
	for _, timer := range a.Start {
		after := missingAfter
		if timer.Short {
			after = shortMissingAfter
		}
		t.timers[timer] = time.AfterFunc(after, func() { t.client.serial.Do(func() { t.expired(timer) }) })
	}
	for _, d := range a.Deliver {
		t.deliver(d)
	}
	for _, f := range a.Fail {
		// The error must not wrap f.Err: if f.Err is a status error, gRPC would fail calls with this
		// status, including wait-for-ready calls.
		err := fmt.Errorf("eds: no %s %q from %s: %v", t.noun, f.Name, t.client.server.URI, f.Err)
		if _, rejected := errors.AsType[ads.Rejected](f.Err); rejected {
			err = rejectedError{err}
		}
		for w := range t.watchers[f.Name] {
			w.Unknown(err, errors.Is(f.Err, ads.ErrMissing) && t.client.outage == nil)
		}
	}
	for _, f := range a.Kept {
		err := rejectedError{fmt.Errorf("eds: rejected the %s %q from %s: %v", t.noun, f.Name, t.client.server.URI, f.Err)}
		for w := range t.watchers[f.Name] {
			w.Rejected(err)
		}
	}
	if a.Send != nil {
		t.send(a.Send, a.Later)
	}
	if a.Renew {
		t.client.current.cancel(errRenewed)
	}
}

// repeatedNACKDelay is the delay of a NACK for a version that was already rejected (docs/waits.md).
const repeatedNACKDelay = 5 * time.Second

// send puts a request into the mailbox. If later is true, it does so after repeatedNACKDelay. The
// request replaces an already delayed request, and the timer of that request continues to run.
func (t *topic) send(r *ads.Request, later bool) {
	r = r.Replacing(t.delayed)
	if !later {
		t.dropDelayed()
		t.client.current.mailboxes[t.index].put(r)
		return
	}
	t.delayed = r
	if !t.delay.Runs() {
		t.delay.Start(&t.client.serial, repeatedNACKDelay, func() { t.send(t.delayed, false) })
	}
}

func (t *topic) dropDelayed() {
	t.delayed = nil
	t.delay.Stop()
}

// deliver passes a resource to watchers. The client keeps only the encoded resource, which is ten
// times smaller than the parsed one. A later watcher gets the same parsed resource if another
// watcher still holds it.
func (t *topic) deliver(d ads.Resource) {
	r, _ := d.Parsed.(*Resource)
	if r == nil {
		r = t.delivered[d.Name].Value()
	}
	if r == nil {
		// The resource was decoded successfully before, so an error is not expected.
		again := t.decode(&anypb.Any{TypeUrl: t.url, Value: d.Body})
		if again.Err != nil {
			logger.Errorf("eds: %s %q from %s: %v", t.noun, d.Name, t.client.server.URI, again.Err)
			return
		}
		r = again.Parsed.(*Resource)
	}
	t.delivered[d.Name] = weak.Make(r)
	for w := range t.watchers[d.Name] {
		w.Resource(r, d.Version)
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
	silent := !c.answered && time.Since(c.ended) >= missingAfter
	if silent {
		c.recordOutage(errSilent)
	} else if c.outage == nil && len(a.Fail) > 0 && errors.Is(a.Fail[0].Err, ads.ErrSilent) {
		o := c.newOutage(errSilent)
		o.partial = true
		t.silences[timer.Name] = o
		t.notifyLost(timer.Name, o)
	}
	t.execute(a)
	if !c.answered && !silent {
		t.execute(t.subs.RestartTimers())
	}
}

func (t *topic) notifyLost(name string, o *Outage) {
	for w := range t.watchers[name] {
		w.Lost(o)
	}
}

// serverResponded is called when a response of any type has arrived, before the response is
// applied.
func (t *topic) serverResponded() {
	for _, o := range t.silences {
		o.recovered.Store(true)
	}
	t.execute(t.subs.ServerResponds())
}
