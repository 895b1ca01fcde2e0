package discovery

import (
	"cmp"
	"errors"
	"reflect"
	"time"
)

// Receiver receives the answers and errors of one source, for one channel. You can call its methods
// from any goroutine, including inside Start. They queue the event and return. The channel is
// updated on another goroutine, and events that arrive during an update are combined into one. The
// exception is an answer of a gRPC resolver, which is applied on the caller's stack unless another
// event is being applied. Methods never call the source on the caller's stack. After Started.Close,
// they do nothing and return nil.
//
// The zero value does nothing.
type Receiver struct{ hooks Hooks }

var errNoReason = errors.New("the source failed without a reason")

// Hooks are functions that implement the methods of a Receiver with the same names. If one is nil,
// its method does nothing. They must be safe for concurrent use.
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

// With returns a receiver that calls the functions in hooks, and r for any that are nil. It's meant
// for sources that change the answers of another source. r isn't modified. In tests, use
// new(Receiver).With.
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

// Update replaces the last answer. Repeating an answer is cheap and confirms it. If the answer is
// invalid, or if it has no endpoints and Answer.Empty isn't set, Update returns an error. Both
// count as failures, and the source should look again soon. If the channel rejects the answer, the
// source's ResolveNow is called. For a wrapped gRPC resolver, Update returns the channel's error
// instead, provided that the answer was applied before Update returns.
func (r *Receiver) Update(a Answer) error {
	if r.hooks.Update == nil {
		return nil
	}
	return r.hooks.Update(a)
}

// Fail reports why the source has no answer, or why it can't confirm its last one. The last good
// answer stays in use. If there's none, calls fail with err. We log err whenever its text changes,
// so don't put anything in it that's different each time, such as IDs, local ports or times. Only
// the text is passed on, because a status in err would fail wait-for-ready calls. If err wraps an
// error with a method Refused() bool that returns true, metrics count the failure as refused.
func (r *Receiver) Fail(err error) {
	if r.hooks.Fail != nil {
		r.hooks.Fail(cmp.Or(err, errNoReason))
	}
}

// Confirm reports that the source's last answer is still current, and clears any failure or
// unconfirmed state. It's equally cheap for all answers, no matter how large. It has no effect
// before the first answer.
func (r *Receiver) Confirm() {
	if r.hooks.Confirm != nil {
		r.hooks.Confirm()
	}
}

// Unconfirmed reports that the source can't find out if its last answer is still current, e.g.
// because its server is unreachable. since is the time until which the answer was confirmed, or
// zero if the answer is confirmed in another way. This doesn't affect calls, but shows up on the
// debug page. The source itself should log it, since many channels may share the source. If since
// is set, the next Update or Confirm ends the state. So does a nil err, which means that the source
// is connected again but hasn't received an answer yet.
func (r *Receiver) Unconfirmed(err error, since time.Time) {
	if r.hooks.Unconfirmed != nil {
		r.hooks.Unconfirmed(err, since)
	}
}

// Rejected reports that the source refused an update from its server, and why. The last answer
// isn't affected. The error shows up on the debug page and in metrics, but the source itself should
// log it. If the refusal leaves a source without any answer, it must call Fail instead.
func (r *Receiver) Rejected(err error) {
	if r.hooks.Rejected != nil && err != nil {
		r.hooks.Rejected(err)
	}
}

// Trying says in a few words what the source is waiting for before its first answer, e.g. "looking
// up shop.example.com". To clear it, pass an empty string. The text shows up on the debug page, in
// the errors of calls whose deadline expires after 0.2 s or more, and in the log after 2 s. Once
// there's an answer or a failure, the text is cleared and Trying no longer has any effect.
func (r *Receiver) Trying(text string) {
	if r.hooks.Trying != nil {
		r.hooks.Trying(text)
	}
}

// Mechanisms replaces the source's answer with a list of discovery mechanisms, which must not be
// empty. The priorities of the first mechanism are followed by those of the second, and so on. The
// source keeps running, and may send another list or an answer at any time. Each mechanism has a
// name, its own errors, and its own last answer. If a later list has a mechanism of the same name,
// it uses that answer as long as its own source fails or doesn't answer. If the Sources of both
// mechanisms are equal (==), the source isn't restarted. Endpoints are verified in the same way as
// those of the source that sent the list, so Authority and TrustNames are ignored. Lists don't
// nest: if the source of a mechanism sends a list, that counts as a failure.
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
// the time until which it was current. Names older than an hour are omitted, and using a name
// doesn't make it any newer. If the source takes over from one that's still running, Remembered
// returns all Names of its predecessor's last answer.
func (r *Receiver) Remembered() map[string]Name {
	if r.hooks.Remembered == nil {
		return nil
	}
	return r.hooks.Remembered()
}
