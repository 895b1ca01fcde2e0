package eds

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/adsclient"
	"github.com/understudy-lb/understudy/internal/xnet"
)

// watch passes on what is followed. It is called on the stack of the channel's own Following, and not
// on that of a stream, which channels share.
type watch struct {
	receiver *discovery.Receiver
	pass     func(adsclient.Snapshot)
	ctx      context.Context // ends with the watch
	cancel   context.CancelFunc

	following atomic.Pointer[adsclient.Following] // nil until it is known how to reach the servers
	lost      *adsclient.Outage                   // why the answer is not confirmed, nil where it is
}

// Changed implements adsclient.Follower.
func (w *watch) Changed(s adsclient.Snapshot) {
	w.pass(s)
	w.doubt() // what was passed on may be from before
}

// Unknown implements adsclient.Follower.
func (w *watch) Unknown(err error) {
	w.receiver.Fail(err)
	w.doubt()
}

// Rejected implements adsclient.Follower.
func (w *watch) Rejected(err error) { w.receiver.Rejected(err) }

// Lost implements adsclient.Follower.
func (w *watch) Lost(o *adsclient.Outage) {
	if w.lost = o; o == nil {
		w.receiver.Unconfirmed(nil, time.Time{})
	}
	w.doubt()
}

// doubt says why the last answer is not confirmed, if it is not.
func (w *watch) doubt() {
	if w.lost != nil {
		w.receiver.Unconfirmed(w.lost.Err, w.lost.Heard)
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
	w.cancel()
	if following := w.following.Load(); following != nil {
		following.Stop()
	}
}

// fileError says what is wrong with a file, or with what was read from one. It may pass: the
// file may be in the middle of being written, or its volume not there yet.
type fileError struct{ error }

// begin begins to follow, unless the watch is closed.
func (w *watch) begin(servers []adsclient.Server, follow func([]adsclient.Server) *adsclient.Following) {
	w.receiver.Trying(awaited(servers))
	if w.ctx.Err() != nil {
		return
	}
	following := follow(servers)
	w.following.Store(following)
	if w.ctx.Err() != nil { // it may have been closed before that was stored
		following.Stop()
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
		if !xnet.Rest(w.ctx, xnet.Backoff(attempt, rand.Float64())) {
			return
		}
		servers, err = read()
	}
	w.begin(servers, follow)
}
