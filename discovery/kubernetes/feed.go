package kubernetes

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/understudy-lb/understudy/discovery"
)

// source is comparable: two sources are equal if they find the same endpoints.
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
	f := join(subject{s.server, s.namespace, s.services})
	u := &user{query: s.query, receiver: r}
	go f.add(u)
	return discovery.Started{Close: func() { f.remove(u) }, Confirmed: f.confirmed}, nil
}

// subject identifies a feed. Targets that differ only in the port, or in the endpoints that they
// use of the slices, have the same subject.
type subject struct {
	server
	namespace string
	services  string
}

var feeds = struct {
	mu    sync.Mutex
	all   map[subject]*feed
	hosts map[server]*host
}{all: make(map[subject]*feed), hosts: make(map[server]*host)}

// feed passes the slices of a watch to its users.
type feed struct {
	subject
	users int // guarded by feeds.mu
	end   context.CancelFunc
	at    atomic.Pointer[time.Time]

	telling sync.Mutex // held while receivers are called
	said    said

	mu   sync.Mutex // never held while a receiver is called
	told map[*user]bool
}

type said struct {
	snapshot *snapshot
	failure  error
	doubt    error // reason why the snapshot may be out of date, or nil
}

// user is a started source. Its answers are made from the slices of a feed.
type user struct {
	query
	receiver *discovery.Receiver
	failed   bool // no answer can be made from the snapshot for this user; guarded by feed.telling
	left     bool // guarded by feed.mu
}

// join returns the feed of a subject, which it starts if necessary. When the caller no longer needs
// the feed, it must call remove.
func join(s subject) *feed {
	feeds.mu.Lock()
	defer feeds.mu.Unlock()
	f := feeds.all[s]
	if f == nil {
		f = &feed{subject: s, told: make(map[*user]bool)}
		feeds.all[s] = f
		h := feeds.hosts[s.server]
		if h == nil {
			h = &host{server: s.server}
			feeds.hosts[s.server] = h
		}
		h.users++
		var ctx context.Context
		ctx, f.end = context.WithCancel(context.Background())
		w := &watch{feed: f, host: h, known: newKnown(), namespace: s.namespace}
		go w.run(ctx)
	}
	f.users++
	return f
}

// release is called when a feed that uses h ends. When no other feed uses h, release closes it.
func (h *host) release() {
	feeds.mu.Lock()
	h.users--
	over := h.users == 0
	if over {
		delete(feeds.hosts, h.server)
	}
	feeds.mu.Unlock()
	if over {
		h.close()
	}
}

// add registers a user and passes it the current state.
func (f *feed) add(u *user) {
	f.telling.Lock()
	defer f.telling.Unlock()
	f.mu.Lock()
	over := u.left
	if !over {
		f.told[u] = true
	}
	f.mu.Unlock()
	if !over {
		f.pass(u)
	}
}

// remove undoes join and add. It does not wait for calls of the user's receiver, because it may be
// called from inside one.
func (f *feed) remove(u *user) {
	f.mu.Lock()
	u.left = true
	delete(f.told, u)
	f.mu.Unlock()
	feeds.mu.Lock()
	f.users--
	over := f.users == 0
	if over {
		delete(feeds.all, f.subject)
	}
	feeds.mu.Unlock()
	if over {
		f.end()
	}
}

func (f *feed) each(tell func(*user)) {
	f.mu.Lock()
	all := make([]*user, 0, len(f.told))
	for u := range f.told {
		all = append(all, u)
	}
	f.mu.Unlock()
	for _, u := range all {
		tell(u)
	}
}

// pass passes the current state to a user. The caller holds f.telling.
func (f *feed) pass(u *user) {
	switch {
	case f.said.snapshot != nil:
		a, err := answer(u.query, f.said.snapshot)
		if u.failed = err != nil; u.failed {
			u.receiver.Fail(err)
		} else {
			_ = u.receiver.Update(a) // the error is ignored, because only other slices can change the answer
		}
		if f.said.doubt != nil {
			u.receiver.Unconfirmed(f.said.doubt, f.confirmed())
		}
	case f.said.failure != nil:
		u.receiver.Fail(f.said.failure)
	}
}

func (f *feed) update(s *snapshot) {
	f.telling.Lock()
	defer f.telling.Unlock()
	f.said = said{snapshot: s}
	f.note()
	f.each(f.pass)
}

// revise passes on a snapshot from which expired slices have been removed. It does not confirm that
// the snapshot is current.
func (f *feed) revise(s *snapshot) {
	f.telling.Lock()
	defer f.telling.Unlock()
	f.said.snapshot = s
	f.each(f.pass)
}

// confirm tells the users that the snapshot is current. It omits users that still use the answer
// from an earlier snapshot, because no answer could be made from this one.
func (f *feed) confirm() {
	f.telling.Lock()
	defer f.telling.Unlock()
	doubted := f.said.doubt != nil
	f.said.doubt = nil
	f.note()
	f.each(func(u *user) {
		switch {
		case !u.failed:
			u.receiver.Confirm()
		case doubted:
			u.receiver.Unconfirmed(nil, time.Time{})
			f.pass(u)
		}
	})
}

// fail tells the users the reason why there is no snapshot, or no newer one.
func (f *feed) fail(err error) {
	f.telling.Lock()
	defer f.telling.Unlock()
	if f.said.snapshot == nil {
		f.said.failure = err
		f.each(func(u *user) { u.receiver.Fail(err) })
		return
	}
	f.said.doubt = err
	f.each(func(u *user) { u.receiver.Unconfirmed(err, f.confirmed()) })
}

func (f *feed) note() {
	now := time.Now()
	f.at.Store(&now)
}

func (f *feed) confirmed() time.Time {
	if at := f.at.Load(); at != nil {
		return *at
	}
	return time.Time{}
}
