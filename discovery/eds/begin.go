package eds

import (
	"errors"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/understudy-lb/understudy/internal/adsclient"
	"github.com/understudy-lb/understudy/internal/backoff"
)

// mayPass returns whether err is the system's, which says that a file cannot be read: there
// are too few descriptors, or its volume is not there. A mistake in what was read stays.
func mayPass(err error) bool {
	_, system := errors.AsType[syscall.Errno](err)
	return system
}

// begin begins to follow, unless the watch is closed.
func (w *watch) begin(servers []adsclient.Server, follow func([]adsclient.Server) *adsclient.Following) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.following = follow(servers)
	}
}

// tryAgain reads how to reach the servers until it can, after gRPC's backoff each time. Until
// then it passes on why it cannot, a mistake in what it reads meanwhile included.
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
