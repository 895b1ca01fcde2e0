package kubernetes

import (
	"errors"
	"time"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

// source finds the endpoints of a target. It is comparable: equal sources find the same endpoints.
type source struct {
	query
	server
}

// Start starts a watch of the target's Services, or joins it. Targets that differ only in the port,
// or in which endpoints of the slices they use, share a watch.
func (s source) Start(r *discovery.Receiver) (discovery.Started, error) {
	r.Trying("watching the EndpointSlices of " + s.String())
	u := &user{query: s.query, receiver: r}
	w := watched{s.server, s.namespace, s.services}
	return discovery.Shared(w, 0, w).Start(r.With(discovery.Hooks{Mechanisms: u.update, Confirm: u.confirm, Unconfirmed: u.unconfirmed}))
}

// user makes the answers of a target from the snapshots of a watch. Its methods are called one at a
// time.
type user struct {
	query
	receiver      *discovery.Receiver
	last          *discovery.Answer // nil before the first
	failure       error             // why there is no answer for the last snapshot, or nil
	isUnconfirmed bool
}

// update receives a snapshot, which is the source of the only mechanism.
func (u *user) update(list []discovery.Mechanism) {
	s := list[0].Source.(*snapshot)
	a, err := answer(u.query, s)
	if unknown, ok := errors.AsType[unknownPortError](err); ok && u.last != nil && !s.hasPodOf(u.last) {
		a, err = discovery.Answer{Service: u.String(), Empty: true, Why: printable.Text(unknown.Error())}, nil
	}
	if u.failure = err; err != nil {
		u.fail()
		return
	}
	u.last, u.isUnconfirmed = &a, false
	_ = u.receiver.Update(a) // no error handling is needed, because only other slices can change the answer
}

// fail reports that the snapshot is current, but that no answer could be made from it.
func (u *user) fail() {
	if u.isUnconfirmed {
		u.isUnconfirmed = false
		u.receiver.Unconfirmed(nil, time.Time{})
	}
	u.receiver.Fail(u.failure)
}

// confirm reports that the snapshot is current. If no answer could be made from it, the answer of
// an earlier snapshot is still in use, and is not confirmed.
func (u *user) confirm() {
	switch {
	case u.failure == nil:
		u.isUnconfirmed = false
		u.receiver.Confirm()
	case u.isUnconfirmed:
		u.fail()
	}
}

func (u *user) unconfirmed(err error, since time.Time) {
	u.isUnconfirmed = err != nil
	u.receiver.Unconfirmed(err, since)
}
