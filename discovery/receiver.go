package discovery

import (
	"errors"
	"reflect"
	"time"
)

// Receiver takes what one source finds, for one channel. Its methods may be called from any
// goroutine and from anywhere, also from inside Start. They note what is said, and return: the
// channel is updated on another goroutine, and what comes while it takes an answer becomes one update.
// The answer of a gRPC resolver goes to the channel on its caller's stack, where no other is on its way. They
// never call the source on the caller's stack. After Started.Close they do nothing, and return nil.
//
// The zero value does nothing, either.
type Receiver struct{ hooks Hooks }

var errNoReason = errors.New("the source failed, and gives no reason")

// Hooks are functions that stand for the methods of a Receiver of the same names. Those that
// are nil do nothing. They must be safe for concurrent use.
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

// With returns a receiver that calls those of the functions that are set, and r for the others:
// for a source that changes what another one says. r stays as it is. Tests have
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

// Update takes an answer, which replaces the one before. Repeating an answer costs little, and
// confirms it. Update returns an error where the source should look again soon: the answer
// breaks the rules, or holds no endpoint and does not say by Answer.Empty that this is meant,
// which are failures. Where the channel does not take it, the source is asked by ResolveNow to look
// again; a wrapped gRPC resolver hears of it by the error, if its answer went there on its stack.
func (r *Receiver) Update(a Answer) error {
	if r.hooks.Update == nil {
		return nil
	}
	return r.hooks.Update(a)
}

// Fail takes the reason why there is no answer now, or why the last one cannot be confirmed. The
// last answer stays in use; calls see the reason only where there is none. The log has it once
// until its text changes, so the same trouble must have the same text: no ids, local ports or
// times. Only the text is passed on: a status would end calls that wait for ready. See Mistake
// and Refused.
func (r *Receiver) Fail(err error) {
	if err == nil {
		err = errNoReason
	}
	if r.hooks.Fail != nil {
		r.hooks.Fail(err)
	}
}

// Confirm says that the last answer of this source is current, which ends a failure or a doubt. It
// costs nothing, however large the answer is. Without an answer it has no effect.
func (r *Receiver) Confirm() {
	if r.hooks.Confirm != nil {
		r.hooks.Confirm()
	}
}

// Unconfirmed says that the source cannot hear whether its last answer still holds, such as
// because its server is away, and why. since is until when the answer was confirmed, zero where
// something else confirms it. Nothing changes for calls. The page shows it; the log has it from
// the source, since many channels may share what was lost. Where since is given the next Update or
// Confirm ends it. So does err nil, where the source hears again but does not know yet whether
// the answer holds.
func (r *Receiver) Unconfirmed(err error, since time.Time) {
	if r.hooks.Unconfirmed != nil {
		r.hooks.Unconfirmed(err, since)
	}
}

// Rejected says that the source refused what it was sent, and why: its last answer stays as good
// as it was. The page and metrics have it; the log has it from the source. A source that has no
// answer for this reason says Fail(Refused(err)).
func (r *Receiver) Rejected(err error) {
	if r.hooks.Rejected != nil && err != nil {
		r.hooks.Rejected(err)
	}
}

// Trying says what the source waits for while nothing is known, in a few words, such as
// "looking up shop.example.com"; "" for nothing. The page shows it, calls whose deadlines come
// say it after 0.2 s, and the log has it after 2 s. It ends with an answer or a failure, and has no effect after one.
func (r *Receiver) Trying(text string) {
	if r.hooks.Trying != nil {
		r.hooks.Trying(text)
	}
}

// Parts takes a list of parts, at least one, in place of an answer: the source has
// found out that its endpoints come from elsewhere, all priorities of the first part,
// then those of the second, and so on. The source goes on, and may give another list
// or an answer at any time. Each part has a name, its own errors, and its own last
// answer, which a part of the same name in a later list inherits; where the Source is
// the same one (==), it is not even started again. Its endpoints are verified as
// those of the whole: Authority and TrustNames do not count. A part has no parts itself:
// its source's list is taken for a failure.
//
// What is in use stays in use until a part of the new list has answered, and the others
// have answered or failed, or the failover time is over.
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

// Remembered returns the Names of the answer that is kept from before the channel was idle, each
// with the time until which it was known. Those of more than an hour ago are left out: a use of
// them does not confirm them. Where the source takes the place of one before it, they are all
// those of the answer in use.
func (r *Receiver) Remembered() map[string]Name {
	if r.hooks.Remembered == nil {
		return nil
	}
	return r.hooks.Remembered()
}
