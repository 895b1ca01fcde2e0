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

// topic has the subscriptions to one type of resource, guarded by client.serial.
type topic struct {
	*Type
	index         int
	client        *client
	subs          *ads.Subscriptions
	watchers      map[string]map[Watcher]bool
	timers        map[ads.Timer]*time.Timer
	delayed       *ads.Request // repeated NACK to send once delay fires, or nil
	delay         serial.Timer
	lastRejection string
	delivered     map[string]weak.Pointer[Resource] // weak pointers, so that only watchers keep a parsed resource in memory
	warnTTL       sync.Once

	// Keyed by name. The server is reachable, but hasn't sent anything since we requested that
	// resource.
	silences map[string]*Outage
}

func (c *client) watch(typ *Type, name string, w Watcher) (cancel func()) {
	if !utf8.ValidString(name) { // the server would end the stream, which belongs to all watchers
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
		t.watchers[name] = map[Watcher]bool{w: true} // the others already know
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
		// Don't wrap f.Err. If there's a status in it, gRPC would fail even calls that are
		// wait-for-ready.
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

const repeatedNACKDelay = 5 * time.Second // how long we wait before we NACK the same version again (docs/waits.md)

func (t *topic) send(r *ads.Request, later bool) {
	// We replace a request that's already delayed, but keep its timer.
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

func (t *topic) deliver(d ads.Resource) {
	// We only hold on to the encoded resource, which is ten times smaller than the parsed one. If
	// some watcher still has the parsed one, a new watcher gets that. Otherwise, we have to parse
	// it again.
	r, _ := d.Parsed.(*Resource)
	if r == nil {
		r = t.delivered[d.Name].Value()
	}
	if r == nil {
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

func (t *topic) expired(timer ads.Timer) {
	// There are three reasons why a resource may not have arrived in time:
	//
	//	no response for 15 s               the server is unreachable, for all watchers
	//	none since we asked for this one   it's unreachable, but only for this one's watchers
	//	responses, but without this one    the server doesn't have it
	c := t.client
	delete(t.timers, timer)
	a := t.subs.Expired(timer)
	if len(a.Fail) > 0 && !timer.Short { // short timers are only for resources we've already logged as missing
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
