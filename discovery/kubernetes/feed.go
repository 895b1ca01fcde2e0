package kubernetes

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

// source finds the endpoints of a target. It is comparable: equal sources find the same endpoints.
type source struct {
	query
	server
}

func (s source) Check(bool) error { return s.check() }

func (s source) Start(r *discovery.Receiver) (discovery.Started, error) {
	if err := s.check(); err != nil {
		return discovery.Started{}, err
	}
	r.Trying("watching the EndpointSlices of " + s.String())
	f := join(feedKey{s.server, s.namespace, s.services})
	u := &user{query: s.query, receiver: r}
	go f.add(u)
	return discovery.Started{Close: func() { f.remove(u) }, Confirmed: f.confirmed}, nil
}

// feedKey identifies a feed. Targets that differ only in the port, or in which endpoints of the
// slices they use, have the same feedKey.
type feedKey struct {
	server
	namespace string
	services  string
}

var feeds = struct {
	mu      sync.Mutex
	byKey   map[feedKey]*feed
	clients map[server]*apiClient
}{byKey: make(map[feedKey]*feed), clients: make(map[server]*apiClient)}

// feed passes the slices of a watch to its users.
type feed struct {
	feedKey
	users       int // guarded by feeds.mu
	cancel      context.CancelFunc
	confirmedAt atomic.Pointer[time.Time]

	sendMu sync.Mutex // held while receivers are called; guards the next field
	last   feedState

	mu         sync.Mutex // never held while a receiver is called
	registered map[*user]bool
}

type feedState struct {
	snapshot       *snapshot
	failure        error
	unconfirmedErr error // reason why the snapshot may be out of date, or nil
}

// user is a started source, whose answers are made from the slices of a feed.
type user struct {
	query
	receiver *discovery.Receiver
	failed   bool              // whether making an answer from the snapshot failed; guarded by feed.sendMu
	last     *discovery.Answer // nil before the first; guarded by feed.sendMu
	removed  bool              // guarded by feed.mu
}

// join returns the feed for a key, and starts the feed if necessary. The caller must call remove
// when it no longer needs the feed.
func join(s feedKey) *feed {
	feeds.mu.Lock()
	defer feeds.mu.Unlock()
	f := feeds.byKey[s]
	if f == nil {
		f = &feed{feedKey: s, registered: make(map[*user]bool)}
		feeds.byKey[s] = f
		h := feeds.clients[s.server]
		if h == nil {
			h = &apiClient{server: s.server}
			feeds.clients[s.server] = h
		}
		h.users++
		var ctx context.Context
		ctx, f.cancel = context.WithCancel(context.Background())
		w := &watch{feed: f, client: h, known: newKnownSlices(), namespace: s.namespace}
		go w.run(ctx)
	}
	f.users++
	return f
}

// release is called when a feed that uses h ends. If no other feed uses h, release closes h.
func (h *apiClient) release() {
	feeds.mu.Lock()
	h.users--
	isUnused := h.users == 0
	if isUnused {
		delete(feeds.clients, h.server)
	}
	feeds.mu.Unlock()
	if isUnused {
		h.close()
	}
}

// add registers a user and sends it the current state.
func (f *feed) add(u *user) {
	f.sendMu.Lock()
	defer f.sendMu.Unlock()
	f.mu.Lock()
	wasRemoved := u.removed
	if !wasRemoved {
		f.registered[u] = true
	}
	f.mu.Unlock()
	if !wasRemoved {
		f.send(u)
	}
}

// remove removes a user that was registered with join and add. It does not wait for calls of the
// user's receiver, because it may be called from inside such a call.
func (f *feed) remove(u *user) {
	f.mu.Lock()
	u.removed = true
	delete(f.registered, u)
	f.mu.Unlock()
	feeds.mu.Lock()
	f.users--
	isUnused := f.users == 0
	if isUnused {
		delete(feeds.byKey, f.feedKey)
	}
	feeds.mu.Unlock()
	if isUnused {
		f.cancel()
	}
}

func (f *feed) forEach(fn func(*user)) {
	f.mu.Lock()
	all := make([]*user, 0, len(f.registered))
	for u := range f.registered {
		all = append(all, u)
	}
	f.mu.Unlock()
	for _, u := range all {
		fn(u)
	}
}

// send passes the current state to a user. The caller must hold f.sendMu.
func (f *feed) send(u *user) {
	switch {
	case f.last.snapshot != nil:
		a, err := answer(u.query, f.last.snapshot)
		if unknown, ok := errors.AsType[unknownPortError](err); ok && u.last != nil && !f.last.snapshot.hasPodOf(u.last) {
			a, err = discovery.Answer{Service: u.String(), Empty: true, Why: printable.Text(unknown.Error())}, nil
		}
		if u.failed = err != nil; u.failed {
			u.receiver.Fail(err)
		} else {
			u.last = &a
			_ = u.receiver.Update(a) // no error handling is needed, because only other slices can change the answer
		}
		if f.last.unconfirmedErr != nil {
			u.receiver.Unconfirmed(f.last.unconfirmedErr, f.confirmed())
		}
	case f.last.failure != nil:
		u.receiver.Fail(f.last.failure)
	}
}

func (f *feed) update(s *snapshot) {
	f.sendMu.Lock()
	defer f.sendMu.Unlock()
	f.last = feedState{snapshot: s}
	f.markConfirmed()
	f.forEach(f.send)
}

// revise sends a snapshot from which expired slices have been removed. It does not confirm that the
// snapshot is current.
func (f *feed) revise(s *snapshot) {
	f.sendMu.Lock()
	defer f.sendMu.Unlock()
	f.last.snapshot = s
	f.forEach(f.send)
}

// confirm reports to the users that the snapshot is current, except to users for which no answer
// could be made from the snapshot. These users still have an answer from an earlier snapshot.
func (f *feed) confirm() {
	f.sendMu.Lock()
	defer f.sendMu.Unlock()
	wasUnconfirmed := f.last.unconfirmedErr != nil
	f.last.unconfirmedErr = nil
	f.markConfirmed()
	f.forEach(func(u *user) {
		switch {
		case !u.failed:
			u.receiver.Confirm()
		case wasUnconfirmed:
			u.receiver.Unconfirmed(nil, time.Time{})
			f.send(u)
		}
	})
}

// fail reports to the users why there is no snapshot, or no newer snapshot.
func (f *feed) fail(err error) {
	f.sendMu.Lock()
	defer f.sendMu.Unlock()
	if f.last.snapshot == nil {
		f.last.failure = err
		f.forEach(func(u *user) { u.receiver.Fail(err) })
		return
	}
	f.last.unconfirmedErr = err
	f.forEach(func(u *user) { u.receiver.Unconfirmed(err, f.confirmed()) })
}

func (f *feed) markConfirmed() {
	now := time.Now()
	f.confirmedAt.Store(&now)
}

func (f *feed) confirmed() time.Time {
	if confirmedAt := f.confirmedAt.Load(); confirmedAt != nil {
		return *confirmedAt
	}
	return time.Time{}
}
