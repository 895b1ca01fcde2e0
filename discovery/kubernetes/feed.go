package kubernetes

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/understudy-lb/understudy/discovery"
)

// source finds the endpoints of Services. It is the key by which it is shared, so it stays comparable.
type source struct {
	query
	server
}

// Check implements discovery.Source.
func (s source) Check(bool) error { return s.check() }

// Start implements discovery.Source.
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

// subject is what one watch is about. Targets that differ in the port alone, or in what they make of the
// slices, have the same one.
type subject struct {
	server
	namespace string
	services  string
}

// feeds are the watches at work, and the servers that they ask.
var feeds = struct {
	mu    sync.Mutex
	all   map[subject]*feed
	hosts map[server]*host
}{all: make(map[subject]*feed), hosts: make(map[server]*host)}

// feed is a watch at work. It tells its users what is known.
type feed struct {
	subject
	users int // guarded by feeds.mu
	end   context.CancelFunc
	at    atomic.Pointer[time.Time] // when what is known was confirmed, nil for never

	telling sync.Mutex // a user receives one thing at a time
	said    said

	mu   sync.Mutex // nothing is called under it
	told map[*user]bool
}

// said is what a feed has said last.
type said struct {
	snapshot *snapshot // nil for none yet
	failure  error     // why there is none
	doubt    error     // why it is not known whether it holds, nil where it does
}

// user is a target that is answered from the slices of a feed.
type user struct {
	query
	receiver *discovery.Receiver
	failed   bool // the slices make no answer; guarded by feed.telling
	left     bool // guarded by feed.mu
}

// join returns the feed of a subject, which has one user more.
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

// release says that a feed asks a server no longer.
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

// add tells a new user what is known, and has it told what comes.
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

// remove takes a user out. It may be on the stack of a call of the user, so it waits for none.
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

// each calls tell for each user.
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

// pass tells a user all that was said. telling is held.
func (f *feed) pass(u *user) {
	switch {
	case f.said.snapshot != nil:
		a, err := answer(u.query, f.said.snapshot)
		if u.failed = err != nil; u.failed {
			u.receiver.Fail(err)
		} else {
			_ = u.receiver.Update(a) // where it is refused, another one has to come
		}
		if f.said.doubt != nil {
			u.receiver.Unconfirmed(f.said.doubt, f.confirmed())
		}
	case f.said.failure != nil:
		u.receiver.Fail(f.said.failure)
	}
}

// update passes on what is known now.
func (f *feed) update(s *snapshot) {
	f.telling.Lock()
	defer f.telling.Unlock()
	f.said = said{snapshot: s}
	f.note()
	f.each(f.pass)
}

// revise passes on what is left of what is known once the time of a deleted slice is over. It confirms
// nothing, and a doubt stays.
func (f *feed) revise(s *snapshot) {
	f.telling.Lock()
	defer f.telling.Unlock()
	f.said.snapshot = s
	f.each(f.pass)
}

// confirm passes on that what is known holds. Where it makes no answer, the one before it does not hold.
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

// fail passes on why there is nothing, or nothing new.
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

// note notes that what is known holds now.
func (f *feed) note() {
	now := time.Now()
	f.at.Store(&now)
}

// confirmed returns when what is known was confirmed, zero for never.
func (f *feed) confirmed() time.Time {
	if at := f.at.Load(); at != nil {
		return *at
	}
	return time.Time{}
}
