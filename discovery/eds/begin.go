package eds

import (
	"math/rand/v2"
	"time"

	"github.com/understudy-lb/understudy/internal/adsclient"
	"github.com/understudy-lb/understudy/internal/backoff"
)

// fileError says what is wrong with a file, or with what was read from one. It may pass: the
// file may be in the middle of being written, or its volume not there yet.
type fileError struct{ error }

// begin begins to follow, unless the watch is closed.
func (w *watch) begin(servers []adsclient.Server, follow func([]adsclient.Server) *adsclient.Following) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.following = follow(servers)
	}
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
