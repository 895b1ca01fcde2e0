package eds

import (
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/adsclient"
	"github.com/understudy-lb/understudy/internal/backoff"
)

// watch passes on what is followed. The shared stream must not wait for a channel, so its
// calls only leave news, and a goroutine passes on the latest.
type watch struct {
	receiver *discovery.Receiver
	pass     func(adsclient.Snapshot)
	news     chan news // holds what was not passed on yet
	done     chan struct{}
	close    sync.Once

	following atomic.Pointer[adsclient.Following] // nil until it is known how to reach the servers
}

// news is what servers say or, while they have nothing, why.
type news struct {
	snapshot *adsclient.Snapshot
	err      error
	outage   *adsclient.Outage // nil where it is over
	outages  bool              // there is something new of it
}

// Changed implements adsclient.Follower.
func (w *watch) Changed(s adsclient.Snapshot) {
	w.leave(func(n *news) { n.snapshot, n.err = &s, nil })
}

// Unknown implements adsclient.Follower.
func (w *watch) Unknown(err error) { w.leave(func(n *news) { n.snapshot, n.err = nil, err }) }

// Rejected implements adsclient.Follower. The receiver only takes note of it, so it does
// not wait for the channel.
func (w *watch) Rejected(err error) { w.receiver.Rejected(err) }

// Lost implements adsclient.Follower. It comes after what was said before, which would end the
// doubt.
func (w *watch) Lost(o *adsclient.Outage) {
	w.leave(func(n *news) { n.outage, n.outages = o, true })
}

// leave replaces older news. One goroutine at a time calls it.
func (w *watch) leave(change func(*news)) {
	var n news
	select {
	case n = <-w.news:
	default:
	}
	change(&n)
	w.news <- n
}

func (w *watch) run() {
	var lost *adsclient.Outage
	for {
		select {
		case <-w.done:
			return
		case n := <-w.news:
			switch {
			case n.err != nil:
				w.receiver.Fail(n.err)
			case n.snapshot != nil:
				w.pass(*n.snapshot)
			}
			before := lost
			if n.outages {
				lost = n.outage
			}
			switch {
			case lost != nil: // also where what was passed on is from before
				w.receiver.Unconfirmed(lost.Err, lost.Heard)
			case before != nil:
				w.receiver.Unconfirmed(nil, time.Time{})
			}
		}
	}
}

// passOn tells a receiver what is known of endpoints, if anything.
func passOn(r *discovery.Receiver, s adsclient.State) {
	switch {
	case s.Good != nil:
		answer := *s.Good.Read.(*discovery.Answer)
		answer.Version = s.Version
		_ = r.Update(answer) // the server sends what is new unasked
	case s.Err != nil:
		r.Fail(s.Err)
	}
}

// confirmed returns when the server in use was last heard: what it sent stays in use
// without it.
func (w *watch) confirmed() time.Time {
	if following := w.following.Load(); following != nil {
		return following.Heard()
	}
	return time.Time{}
}

// endpointsFailed notes that endpoints fail.
func (w *watch) endpointsFailed() {
	if following := w.following.Load(); following != nil {
		following.EndpointsFailed()
	}
}

// stop ends the watch.
func (w *watch) stop() {
	w.close.Do(func() {
		close(w.done)
		if following := w.following.Load(); following != nil {
			following.Stop()
		}
	})
}

// fileError says what is wrong with a file, or with what was read from one. It may pass: the
// file may be in the middle of being written, or its volume not there yet.
type fileError struct{ error }

// begin begins to follow, unless the watch is closed.
func (w *watch) begin(servers []adsclient.Server, follow func([]adsclient.Server) *adsclient.Following) {
	w.receiver.Trying(awaited(servers))
	if w.isClosed() {
		return
	}
	following := follow(servers)
	w.following.Store(following)
	if w.isClosed() { // which may have been before it was stored
		following.Stop()
	}
}

func (w *watch) isClosed() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// awaited says what is waited for.
func awaited(servers []adsclient.Server) string {
	var names []string
	for _, s := range servers {
		names = append(names, s.URI)
	}
	return "waiting for management server " + strings.Join(names, ", then ")
}

// tryAgain reads how to reach the servers until it can, after gRPC's backoff each time. Until
// then it passes on why it cannot.
func (w *watch) tryAgain(err error, read func() ([]adsclient.Server, error), follow func([]adsclient.Server) *adsclient.Following) {
	var servers []adsclient.Server
	for attempt := 0; err != nil; attempt++ {
		w.receiver.Fail(err)
		timer := time.NewTimer(backoff.Delay(attempt, rand.Float64()))
		select {
		case <-w.done:
			timer.Stop()
			return
		case <-timer.C:
		}
		servers, err = read()
	}
	w.begin(servers, follow)
	w.run()
}
