package discovery

import (
	"errors"
	"reflect"
	"time"
)

// Receiver receives the results of one source for one channel. Its methods are safe for concurrent
// use and may be called from inside Start. They record their arguments and return; another
// goroutine updates the channel, and results that arrive during an update are combined. Only the
// answer of a gRPC resolver may reach the channel on its caller's stack. They never call the source
// on the caller's stack. After Started.Close they do nothing and return nil.
//
// The zero Receiver does nothing.
type Receiver struct{ hooks Hooks }

var errNoReason = errors.New("the source failed, and gives no reason")

// Hooks are functions in place of the Receiver's methods of the same names. nil ones do nothing.
// They must be safe for concurrent use.
type Hooks struct {
	Update      func(Answer) error
	Fail        func(error)
	Confirm     func()
	Unconfirmed func(err error, since time.Time)
	Rejected    func(error)
	Trying      func(text string)
	Parts       func([]Mechanism)
	Remembered  func() map[string]Name
}

// With returns a receiver that calls the functions that are set, and r for the others. It is for
// sources that modify another source's results. r stays as it is. Tests can use new(Receiver).With.
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

// Update takes an answer, which replaces the last one. Repeating an answer is cheap and confirms
// it. Update returns an error if the source should look again soon: the answer is invalid, or has
// no endpoint without Answer.Empty, which are failures. If the channel refuses the answer,
// ResolveNow asks the source to look again. A wrapped gRPC resolver receives the refusal as the
// error of Update if its answer reached the channel on its stack.
func (r *Receiver) Update(a Answer) error {
	if r.hooks.Update == nil {
		return nil
	}
	return r.hooks.Update(a)
}

// Fail takes the reason why there is no answer, or why the last one cannot be confirmed. The last
// answer stays in use; calls see the reason only if there is none. The log has it once until its
// text changes, so the same problem must have the same text, without ids, local ports or times.
// Only the text is used, because a status error would fail wait-for-ready calls. See Mistake and
// Refused.
func (r *Receiver) Fail(err error) {
	if err == nil {
		err = errNoReason
	}
	if r.hooks.Fail != nil {
		r.hooks.Fail(err)
	}
}

// Confirm confirms the last answer, which ends a failure or a doubt. Its cost does not depend on
// the answer's size. Without an answer it has no effect.
func (r *Receiver) Confirm() {
	if r.hooks.Confirm != nil {
		r.hooks.Confirm()
	}
}

// Unconfirmed takes the reason why the source cannot verify its last answer, for example because
// its server is unreachable. since is when the answer was last confirmed, or zero if something else
// confirms it. Calls are not affected. The page shows the reason; logging it is left to the source,
// because many channels may share the lost server. With a non-zero since, the next Update or
// Confirm ends the doubt. A nil err ends it if the source can verify answers again but has not
// verified the last one yet.
func (r *Receiver) Unconfirmed(err error, since time.Time) {
	if r.hooks.Unconfirmed != nil {
		r.hooks.Unconfirmed(err, since)
	}
}

// Rejected takes the reason why the source refused a response. Its last answer stays valid. The
// page and metrics show it; logging it is left to the source. A source without an answer calls
// Fail(Refused(err)) instead.
func (r *Receiver) Rejected(err error) {
	if r.hooks.Rejected != nil && err != nil {
		r.hooks.Rejected(err)
	}
}

// Trying takes a few words about what the source waits for before its first result, such as
// "looking up shop.example.com"; "" for nothing. The page shows them at once, the errors of calls
// after 0.2 s, and the log after 2 s. They end with an answer or a failure, and have no effect
// after one.
func (r *Receiver) Trying(text string) {
	if r.hooks.Trying != nil {
		r.hooks.Trying(text)
	}
}

// Parts takes a list of at least one mechanism in place of an answer: the endpoints come from
// elsewhere, all priorities of the first mechanism before those of the second. The source
// continues, and may give another list or an answer at any time. Each mechanism has a name, its own
// errors, and its own last answer, which a mechanism of the same name in a later list inherits. If
// its Source is also equal (==), it is not started again. Endpoints are verified like those of the
// mechanism that the list replaces: Authority and TrustNames have no effect. A list within a list
// is a failure of its source.
//
// The previous answer or list stays in use until a mechanism of the new list has answered, and the
// others have answered or failed or the failover time is over.
func (r *Receiver) Parts(parts []Mechanism) {
	err := checkParts(parts)
	if err == nil && parts[0].Name == "" {
		err = errNoName
	}
	switch {
	case err != nil:
		r.Fail(err)
	case r.hooks.Parts != nil:
		r.hooks.Parts(parts)
	}
}

// Remembered returns the Names of the answer stored before the channel was idle, each with the time
// until which it was known to be valid. It omits names older than an hour. Using them does not
// confirm them. For a source that replaces another one, it returns all Names of the answer in use.
func (r *Receiver) Remembered() map[string]Name {
	if r.hooks.Remembered == nil {
		return nil
	}
	return r.hooks.Remembered()
}
