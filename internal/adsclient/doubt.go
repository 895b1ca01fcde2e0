package adsclient

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/understudy-lb/understudy/internal/printable"
)

// A server that is gone without a word looks like one that has nothing to say. A failure of
// endpoints raises a doubt: a server that is there would soon send others. Then a second stream is
// opened to it, and the current one goes on. The first that brings a response is used. docs/waits.md
// has these times beside the others.
const (
	quietFor    = 30 * time.Second // how long a stream brings nothing until it is doubted
	quietJitter = 10 * time.Second // at most, so that the clients of a server do not come at once
	secondEvery = 5 * time.Minute  // the least time from one second stream to the next
)

var (
	errTakenOver = errors.New("it brought nothing while endpoints failed, and another stream was answered")
	errNoAnswer  = fmt.Errorf("no answer within %v", missingAfter)
)

// doubt is what a client knows of this. It is touched in events of its serializer.
type doubt struct {
	heard  time.Time   // when the current stream brought something last
	tried  time.Time   // when a second stream was opened last
	due    *time.Timer // until one is opened, or nil
	second *attempt    // the one that waits for its answer, or nil
	next   *stream     // the one that was answered, until it takes over
}

// attempt is a second stream that is not in use yet.
type attempt struct{ cancel context.CancelCauseFunc }

// believe notes that the current stream brought something.
func (c *client) believe() {
	c.doubt.heard = time.Now()
	c.trust()
}

// trust ends a doubt.
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

// endpointsFailed notes that endpoints fail which the server sent. It is remembered until the
// stream is quiet for long enough, or brings something: they may fail but once. A ping each 30 s
// says more than a second stream.
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

// openSecond opens a second stream.
func (c *client) openSecond() {
	ctx, cancel := context.WithCancelCause(c.ctx)
	a := &attempt{cancel}
	c.doubt.due, c.doubt.second, c.doubt.tried = nil, a, time.Now()
	logger.Infof("eds: stream to %s brought nothing for %v while endpoints failed: opening a second one", c.server.URI, time.Since(c.doubt.heard).Round(time.Second))
	go c.runSecond(ctx, a)
}

// runSecond opens a second stream, waits for the first response on it, and has it take over.
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
			return // it is not wanted any more
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

// askOn asks on a second stream for all that is wanted.
func (c *client) askOn(s *stream) {
	for i, t := range c.topics {
		if r := t.subs.Outset(); r != nil {
			s.asked[i] = r.Names
			s.mail[i].put(r)
		}
	}
}

// firstOf waits for the first response on a second stream, of a type that was asked for.
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
