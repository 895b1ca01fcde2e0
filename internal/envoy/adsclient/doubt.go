package adsclient

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/understudy-lb/understudy/internal/core/ads"
	"github.com/understudy-lb/understudy/internal/text/printable"
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
	lastResponse time.Time   // when the current stream last received a response
	lastAttempt  time.Time   // when a second stream was last opened
	timer        *time.Timer // opens a second stream when it fires
	attempt      *attempt    // a second stream that waits for a response, or nil
	next         *stream     // a second stream that has received a response and is about to take over, or nil
}

type attempt struct{ cancel context.CancelCauseFunc }

// responseReceived records a response on the current stream, and cancels the second stream.
func (c *client) responseReceived() {
	c.second.lastResponse = time.Now()
	c.cancelSecond()
}

// cancelSecond closes the second stream, or stops the timer that would open it.
func (c *client) cancelSecond() {
	if c.second.timer != nil {
		c.second.timer.Stop()
		c.second.timer = nil
	}
	if c.second.attempt != nil {
		c.second.attempt.cancel(nil)
		c.second.attempt = nil
	}
}

// endpointsFailed starts a timer that opens a second stream if the current stream stays silent. It
// acts on the first failure, because endpoints may report only one failure. A response on the
// current stream stops the timer. A stream with frequent keepalive pings needs no second stream,
// because the pings detect a dead server.
func (c *client) endpointsFailed() {
	c.serial.Do(func() {
		second := &c.second
		if c.current == nil || !c.answered || c.current.frequentPings || second.timer != nil || second.attempt != nil || second.next != nil {
			return
		}
		openTime := second.lastResponse.Add(quietFor)
		if earliest := second.lastAttempt.Add(secondStreamInterval); earliest.After(openTime) {
			openTime = earliest
		}
		var timer *time.Timer
		timer = time.AfterFunc(max(0, time.Until(openTime))+rand.N(quietJitter), func() {
			c.serial.Do(func() {
				if second.timer == timer {
					c.openSecond()
				}
			})
		})
		second.timer = timer
	})
}

func (c *client) openSecond() {
	ctx, cancel := context.WithCancelCause(c.ctx)
	a := &attempt{cancel}
	c.second.timer, c.second.attempt, c.second.lastAttempt = nil, a, time.Now()
	logger.Infof("eds: stream to %s received nothing for %v while endpoints failed: opening a second one", c.server.URI, time.Since(c.second.lastResponse).Round(time.Second))
	go c.runSecond(ctx, a)
}

// runSecond opens a second stream. When the first response arrives on it, the second stream
// replaces the current one.
func (c *client) runSecond(ctx context.Context, a *attempt) {
	limit := time.AfterFunc(missingAfter, func() { a.cancel(errNoResponse) })
	defer limit.Stop()
	s, err := c.open(ctx, a.cancel, false)
	if err == nil {
		c.serial.Do(func() { c.requestAll(s) })
		err = c.awaitFirst(s)
	}
	tookOver := false
	c.serial.Do(func() {
		if c.second.attempt != a || c.ctx.Err() != nil {
			return // a response on the current stream, or its end, has canceled the attempt
		}
		c.second.attempt = nil
		if err == nil && limit.Stop() && ctx.Err() == nil {
			tookOver, c.second.next = true, s
			c.current.cancel(errTakenOver)
			return
		}
		if cause := context.Cause(ctx); errors.Is(cause, errNoResponse) {
			err = cause
		}
		logger.Infof("eds: second stream to %s: %s; the first one stays in use", c.server.URI, printable.Text(printable.Brief(fmt.Sprint(err))))
	})
	if s != nil && !tookOver {
		s.close()
	}
}

func (c *client) requestAll(s *stream) {
	for i, t := range c.topics {
		if names := t.subs.Names(); len(names) > 0 {
			s.requested[i] = names
			s.mailboxes[i].put(&ads.Request{Names: names})
		}
	}
}

// awaitFirst reads from s until a response of a requested type arrives, and stores the response in
// s.firstResponse.
func (c *client) awaitFirst(s *stream) error {
	for {
		response, err := s.ads.Recv()
		if err != nil {
			return err
		}
		for i, t := range c.topics {
			if t.url == response.GetTypeUrl() && s.requested[i] != nil {
				s.firstResponse = response
				return nil
			}
		}
		c.serial.Do(func() { c.countIgnored(response.GetTypeUrl()) })
	}
}
