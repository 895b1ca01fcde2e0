package adsclient

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/understudy-lb/understudy/internal/core/ads"
	"github.com/understudy-lb/understudy/internal/lb/serial"
)

// We cannot tell a server that is gone without closing its connection from one that has no updates.
// But when endpoints fail, a working server usually sends new ones soon. If it does not, we open a
// second stream, and keep the one that gets a response first:
//
//	0 s        last response
//	10 s       an endpoint fails: wait until 30 s, and up to 10 s more
//	30 - 40 s  still silent: open a second stream
//	+15 s      no response there either: close it, and the first one stays
//
// See docs/waits.md for these durations.
const (
	quietFor             = 30 * time.Second // silence of the current stream before a second one is opened
	quietJitter          = 10 * time.Second // spreads the reconnections of a server's clients
	secondStreamInterval = 5 * time.Minute
)

var (
	errTakenOver  = errors.New("it was silent while endpoints failed, and a second stream got a response")
	errNoResponse = fmt.Errorf("no answer within %v", missingAfter)
)

type secondStream struct {
	lastResponse time.Time    // when the current stream last received a response
	lastAttempt  time.Time    // when a second stream was last opened
	timer        serial.Timer // opens a second stream, and then limits how long it waits for a response
	stream       *stream      // a second stream that waits for a response, or nil
}

func (c *client) cancelSecond() {
	c.second.timer.Stop()
	if c.second.stream != nil {
		c.second.stream.cancel(nil)
		c.second.stream = nil
	}
}

func (c *client) endpointsFailed() {
	// We act on the first failure, since endpoints may report only one. A stream with frequent
	// pings needs none of this: the pings find out if the server is gone.
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
