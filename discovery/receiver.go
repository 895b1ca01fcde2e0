package discovery

import (
	"cmp"
	"errors"
	"reflect"
	"time"
)

// Receiver receives the answers and errors of one source, for one channel. Its methods may be
// called from any goroutine, including inside Start. They queue the event and return. The channel
// is updated on another goroutine, and events that arrive during an update are combined into one.
// The exception is an answer of a gRPC resolver, which is applied on the caller's stack unless
// another event is being applied. Methods never call the source on the caller's stack. After
// Started.Close, they do nothing and return nil.
//
// The zero value does nothing.
type Receiver struct{ hooks Hooks }

var errNoReason = errors.New("the source failed without a reason")

// Hooks are functions that implement the methods of a Receiver with the same names. If a function
// is nil, its method does nothing. The functions must be safe for concurrent use.
type Hooks struct {
	Update      func(Answer) error
	Fail        func(error)
	Confirm     func()
	Unconfirmed func(err error, since time.Time)
	Rejected    func(error)
	Trying      func(text string)
	Mechanisms  func([]Mechanism)
	Remembered  func() map[string]Name
}

// With returns a receiver that calls the non-nil functions of hooks, and calls r for the other
// methods. With is meant for a source that changes the answers of another source. It does not
// modify r. Tests can use new(Receiver).With.
func (r *Receiver) With(hooks Hooks) *Receiver {
	to := *r
	fields, set := reflect.ValueOf(&to.hooks).Elem(), reflect.ValueOf(hooks)
	for i := range fields.NumField() {
		if f := set.Field(i); !f.IsNil() {
			fields.Field(i).Set(f)
		}
	}
	return &to
}

// Update replaces the last answer. Repeating an answer is cheap and confirms it. Update returns an
// error if the answer is invalid, or if it has no endpoints and Answer.Empty is not set; both count
// as failures, and the source should look again soon. If the channel rejects the answer, the
// source's ResolveNow is called. For a wrapped gRPC resolver, Update returns the channel's error
// instead, provided that the answer was applied before Update returns.
func (r *Receiver) Update(a Answer) error {
	if r.hooks.Update == nil {
		return nil
	}
	return r.hooks.Update(a)
}

// Fail reports why there is no answer, or why the last answer cannot be confirmed. The last good
// answer stays in use; errors of calls contain the reason only if there is no such answer. The
// reason is logged when its text changes, so the same failure must always have the same text,
// without IDs, local ports or times. Only the text of err is passed on, because a status would fail
// wait-for-ready calls. Metrics count a failure as refused if it wraps an error with the method
// Refused() bool, which returns true.
func (r *Receiver) Fail(err error) {
	if r.hooks.Fail != nil {
		r.hooks.Fail(cmp.Or(err, errNoReason))
	}
}

// Confirm reports that the source's last answer is still current, and clears any failure or
// unconfirmed state. Its cost does not depend on the size of the answer. It has no effect before
// the first answer.
func (r *Receiver) Confirm() {
	if r.hooks.Confirm != nil {
		r.hooks.Confirm()
	}
}

// Unconfirmed reports that the source cannot find out whether its last answer is still current, for
// example because its server is unreachable. since is the time until which the answer was
// confirmed, or zero if the answer is confirmed in another way. Calls are not affected, and the
// debug page shows the state. The source itself should log the loss, because many channels may
// share the source. If since is set, the next Update or Confirm ends the state. A nil err also ends
// it: the source is connected again but has not received an answer yet.
func (r *Receiver) Unconfirmed(err error, since time.Time) {
	if r.hooks.Unconfirmed != nil {
		r.hooks.Unconfirmed(err, since)
	}
}

// Rejected reports that the source refused an update from its server, and why. The last answer is
// not affected. The error appears on the debug page and in metrics; the source itself should log
// it. A source that has no answer because of the refusal calls Fail instead.
func (r *Receiver) Rejected(err error) {
	if r.hooks.Rejected != nil && err != nil {
		r.hooks.Rejected(err)
	}
}

// Trying describes in a few words what the source is waiting for before its first answer, such as
// "looking up shop.example.com". An empty text clears the description. The text appears on the
// debug page, in the errors of calls whose deadline expires after 0.2 s or later, and in the log
// after 2 s. An answer or a failure clears the text, and later calls of Trying have no effect.
func (r *Receiver) Trying(text string) {
	if r.hooks.Trying != nil {
		r.hooks.Trying(text)
	}
}

// Mechanisms replaces the source's answer with a list of discovery mechanisms, which must not be
// empty. The priorities of the first mechanism are followed by those of the second, and so on. The
// source keeps running, and may send another list or an answer at any time. Each mechanism has a
// name, its own errors, and its own last answer. A mechanism of the same name in a later list
// uses that answer if its own source fails or is silent; if the Sources of both mechanisms are equal
// (==), the source is not restarted. Endpoints are verified like those of the source that sent the list; Authority and
// TrustNames are ignored. Lists do not nest: if the source of a mechanism sends a list, that counts
// as a failure.
//
// The previous endpoints stay in use until one mechanism of the new list has answered, and either
// the other mechanisms have answered or failed, or the failover timeout has expired.
func (r *Receiver) Mechanisms(list []Mechanism) {
	if err := checkMechanisms(list, false); err != nil {
		r.Fail(err)
	} else if r.hooks.Mechanisms != nil {
		r.hooks.Mechanisms(list)
	}
}

// Remembered returns the Names of the answer that was cached while the channel was idle, each with
// the time until which it was current. Names older than an hour are omitted, and using a name does
// not renew it. If the source replaces a source that is still running, Remembered returns all names
// of its last answer.
func (r *Receiver) Remembered() map[string]Name {
	if r.hooks.Remembered == nil {
		return nil
	}
	return r.hooks.Remembered()
}
