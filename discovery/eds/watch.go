package eds

import (
	"sync"
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/adsclient"
)

// watch passes on what is followed. The shared stream must not wait for a channel, so its
// calls only leave news, and a goroutine passes on the latest.
type watch struct {
	receiver discovery.Receiver
	pass     func(adsclient.Snapshot)
	news     chan news // holds what was not passed on yet
	done     chan struct{}
	close    sync.Once

	mu        sync.Mutex
	following *adsclient.Following // nil until it is known how to reach the servers
	closed    bool
}

// news is what servers say or, while they have nothing, why.
type news struct {
	snapshot adsclient.Snapshot
	err      error
}

// Changed implements adsclient.Follower.
func (w *watch) Changed(s adsclient.Snapshot) { w.leave(news{snapshot: s}) }

// Unknown implements adsclient.Follower.
func (w *watch) Unknown(err error) { w.leave(news{err: err}) }

// Rejected implements adsclient.Follower. The receiver only takes note of it, so it does
// not wait for the channel.
func (w *watch) Rejected(err error) {
	if r, ok := w.receiver.(interface{ Rejected(error) }); ok {
		r.Rejected(err)
	}
}

// Lost implements adsclient.Follower. The receiver only takes note of it, too.
func (w *watch) Lost(o *adsclient.Outage) {
	r, ok := w.receiver.(interface {
		Unconfirmed(err error, since, confirmed time.Time)
	})
	switch {
	case !ok:
	case o == nil:
		r.Unconfirmed(nil, time.Time{}, time.Time{})
	default:
		r.Unconfirmed(o.Err, o.Since, o.Heard)
	}
}

// leave replaces older news. One goroutine at a time calls it.
func (w *watch) leave(n news) {
	select {
	case <-w.news:
	default:
	}
	w.news <- n
}

func (w *watch) run() {
	for {
		select {
		case <-w.done:
			return
		case n := <-w.news:
			if n.err != nil {
				w.receiver.Fail(n.err)
			} else {
				w.pass(n.snapshot)
			}
		}
	}
}

// passOn tells a receiver what is known of endpoints, if anything.
func passOn(r discovery.Receiver, s adsclient.State) {
	switch {
	case s.Message != nil:
		_ = r.Update(discovery.Answer{Cluster: s.Message.(*endpointv3.ClusterLoadAssignment), Empty: true, Version: s.Version}) // the server sends what is new unasked
	case s.Err != nil:
		r.Fail(s.Err)
	}
}

// Confirmed returns when the server in use was last heard: what it sent stays in use
// without it.
func (w *watch) Confirmed() time.Time {
	w.mu.Lock()
	following := w.following
	w.mu.Unlock()
	if following == nil {
		return time.Time{}
	}
	return following.Heard()
}

// Close implements discovery.Watch.
func (w *watch) Close() {
	w.close.Do(func() {
		w.mu.Lock()
		w.closed = true
		following := w.following
		w.mu.Unlock()
		if following != nil {
			following.Stop()
		}
		close(w.done)
	})
}
