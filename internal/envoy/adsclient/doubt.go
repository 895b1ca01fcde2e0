package adsclient

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/understudy-lb/understudy/internal/core/ads"
	"github.com/understudy-lb/understudy/internal/lb/serial"
)

// If a server goes away without closing its connection, it looks just like a server that doesn't
// have any updates. When endpoints fail, though, a working server usually sends new ones soon. If
// we don't get any, we open a second stream and keep whichever one gets a response first:
//
//	0 s        last response
//	10 s       an endpoint fails: wait until 30 s, and up to 10 s more
//	30 - 40 s  still silent: open a second stream
//	+15 s      no response there either: close it, and the first one stays
//
// See docs/waits.md for these durations.
const (
	quietFor             = 30 * time.Second // how long the stream has to be silent before we open a second one
	quietJitter          = 10 * time.Second // so that a server's clients don't all reconnect at once
	secondStreamInterval = 5 * time.Minute
)

var (
	errTakenOver  = errors.New("it was silent while endpoints failed, and a second stream got a response")
	errNoResponse = fmt.Errorf("no answer within %v", missingAfter)
)

type secondStream struct {
	lastResponse time.Time    // last response on the current stream
	lastAttempt  time.Time    // when we last opened a second stream
	timer        serial.Timer // first for opening a second stream, then for giving up on it
	stream       *stream      // waiting for its first response, or nil
}

func (c *client) cancelSecond() {
	c.second.timer.Stop()
	if c.second.stream != nil {
		c.second.stream.cancel(nil)
		c.second.stream = nil
	}
}

func (c *client) endpointsFailed() {
	// We can't wait for more failures, since endpoints may only report one. There's no need for any
	// of this if the stream has frequent pings, which find out on their own that the server is
	// gone.
	c.serial.Do(func() {
		second := &c.second
		if !c.answered || c.current.frequentPings || second.timer.Runs() || second.stream != nil {
			return
		}
		wait := max(0, time.Until(second.lastResponse.Add(quietFor)), time.Until(second.lastAttempt.Add(secondStreamInterval)))
		second.timer.Start(&c.serial, wait+rand.N(quietJitter), c.openSecond)
	})
}

func (c *client) openSecond() {
	s := c.newStream(false)
	c.second.stream, c.second.lastAttempt = s, time.Now()
	c.second.timer.Start(&c.serial, missingAfter, func() { s.cancel(errNoResponse) })
	logger.Infof("eds: stream to %s received nothing for %v while endpoints failed: opening a second one", c.server.URI, time.Since(c.second.lastResponse).Round(time.Second))
	go c.run(s)
}

func (c *client) requestOnSecond(s *stream) {
	for i, t := range c.topics {
		if names := t.subs.Names(); len(names) > 0 {
			s.requested[i] = names
			s.mailboxes[i].put(&ads.Request{Names: names})
		}
	}
}

func (c *client) takeOver(s *stream) {
	c.second.stream = nil
	c.current.cancel(errTakenOver)
	c.streamEnded(c.current, errTakenOver)
	c.requestAll(s)
}
