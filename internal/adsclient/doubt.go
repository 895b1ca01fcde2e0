package adsclient

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/understudy-lb/understudy/internal/printable"
)

// A server that disappears without closing the connection cannot be distinguished from one that has
// no updates. But when endpoints fail, a working server usually sends others soon. If none arrive,
// the client opens a second stream. It keeps the stream on which a response arrives first.
// docs/waits.md lists these durations.
const (
	quietFor    = 30 * time.Second
	quietJitter = 10 * time.Second // spreads the reconnections of a server's clients
	secondEvery = 5 * time.Minute
)

var (
	errTakenOver = errors.New("it brought nothing while endpoints failed, and another stream was answered")
	errNoAnswer  = fmt.Errorf("no answer within %v", missingAfter)
)

// doubt decides when to open a second stream, because the first one may be dead.
type doubt struct {
	heard  time.Time // when the current stream last brought a response
	tried  time.Time
	due    *time.Timer // opens a second stream when it fires
	second *attempt    // a second stream that waits for a response, or nil
	next   *stream     // a second stream that has received a response and is about to take over, or nil
}

type attempt struct{ cancel context.CancelCauseFunc }

// believe records a response on the current stream. It cancels the second stream.
func (c *client) believe() {
	c.doubt.heard = time.Now()
	c.trust()
}

// trust cancels the second stream, even if it is not open yet.
func (c *client) trust() {
	if c.doubt.due != nil {
		c.doubt.due.Stop()
		c.doubt.due = nil
	}
	if c.doubt.second != nil {
		c.doubt.second.cancel(nil)
		c.doubt.second = nil
	}
}

// endpointsFailed schedules a second stream for the time when the current one has been silent long
// enough. One failure is enough, because endpoints may report only one. A response on the current
// stream cancels the schedule. If the stream has a ping every 30 s, no second one is needed.
func (c *client) endpointsFailed() {
	c.serial.Do(func() {
		d := &c.doubt
		if c.current == nil || !c.answered || c.current.pinged || d.due != nil || d.second != nil || d.next != nil {
			return
		}
		at := d.heard.Add(quietFor)
		if again := d.tried.Add(secondEvery); again.After(at) {
			at = again
		}
		var timer *time.Timer
		timer = time.AfterFunc(max(0, time.Until(at))+rand.N(quietJitter), func() {
			c.serial.Do(func() {
				if d.due == timer {
					c.openSecond()
				}
			})
		})
		d.due = timer
	})
}

func (c *client) openSecond() {
	ctx, cancel := context.WithCancelCause(c.ctx)
	a := &attempt{cancel}
	c.doubt.due, c.doubt.second, c.doubt.tried = nil, a, time.Now()
	logger.Infof("eds: stream to %s brought nothing for %v while endpoints failed: opening a second one", c.server.URI, time.Since(c.doubt.heard).Round(time.Second))
	go c.runSecond(ctx, a)
}

// runSecond opens a second stream. After its first response, that stream replaces the current one.
func (c *client) runSecond(ctx context.Context, a *attempt) {
	limit := time.AfterFunc(missingAfter, func() { a.cancel(errNoAnswer) })
	defer limit.Stop()
	s, err := c.open(ctx, a.cancel, false)
	if err == nil {
		c.serial.Do(func() { c.askOn(s) })
		err = c.firstOf(s)
	}
	took := false
	c.serial.Do(func() {
		if c.doubt.second != a || c.ctx.Err() != nil {
			return // canceled in the meantime
		}
		c.doubt.second = nil
		if err == nil && limit.Stop() && ctx.Err() == nil {
			took, c.doubt.next = true, s
			c.current.cancel(errTakenOver)
			return
		}
		if cause := context.Cause(ctx); errors.Is(cause, errNoAnswer) {
			err = cause
		}
		logger.Infof("eds: second stream to %s: %s; the first stays", c.server.URI, printable.Text(printable.Brief(fmt.Sprint(err))))
	})
	if s != nil && !took {
		s.close()
	}
}

func (c *client) askOn(s *stream) {
	for i, t := range c.topics {
		if r := t.subs.Outset(); r != nil {
			s.asked[i] = r.Names
			s.mail[i].put(r)
		}
	}
}

// firstOf waits for the first response of a type that was requested.
func (c *client) firstOf(s *stream) error {
	for {
		response, err := s.ads.Recv()
		if err != nil {
			return err
		}
		for i, t := range c.topics {
			if t.url == response.GetTypeUrl() && s.asked[i] != nil {
				s.first = response
				return nil
			}
		}
		c.serial.Do(func() { c.ignore(response.GetTypeUrl()) })
	}
}
