package adsclient

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/understudy-lb/understudy/internal/core/ads"
	"github.com/understudy-lb/understudy/internal/lb/serial"
)

// A server that disappears without closing the connection cannot be distinguished from a server
// that has no updates. But when endpoints fail, a working server usually sends new endpoints soon.
// If no response arrives, the client opens a second stream. The client keeps the stream on which a
// response arrives first. docs/waits.md lists these durations.
const (
	quietFor             = 30 * time.Second // silence of the current stream before a second one is opened
	quietJitter          = 10 * time.Second // spreads the reconnections of a server's clients
	secondStreamInterval = 5 * time.Minute
)

var (
	errTakenOver  = errors.New("it was silent while endpoints failed, and a second stream got a response")
	errNoResponse = fmt.Errorf("no answer within %v", missingAfter)
)

// secondStream holds the state of the second stream, which the client opens if the current stream
// may be dead.
type secondStream struct {
	lastResponse time.Time    // when the current stream last received a response
	lastAttempt  time.Time    // when a second stream was last opened
	timer        serial.Timer // opens a second stream, and then limits how long it waits for a response
	stream       *stream      // a second stream that waits for a response, or nil
}

// cancelSecond closes the second stream, or stops the timer that would open it.
func (c *client) cancelSecond() {
	c.second.timer.Stop()
	if c.second.stream != nil {
		c.second.stream.cancel(nil)
		c.second.stream = nil
	}
}

// endpointsFailed starts a timer that opens a second stream if the current stream stays silent. It
// acts on the first failure, because endpoints may report only one failure. A response on the
// current stream stops the timer. A stream with frequent keepalive pings needs no second stream,
// because the pings detect a dead server.
func (c *client) endpointsFailed() {
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

// takeOver replaces the current stream by the second stream, whose first response has arrived.
func (c *client) takeOver(s *stream) {
	c.second.stream = nil
	c.current.cancel(errTakenOver)
	c.streamEnded(c.current, errTakenOver)
	c.requestAll(s)
}
