package debugpage

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy/internal/testing/flat"
)

// A source calls Unconfirmed with an error. The page must show the error until the answer is
// confirmed. A new answer also confirms it, unless Unconfirmed was called without a time.
func TestThePageShowsADoubtUntilItIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &story{up: map[string]bool{"a": true, "b": true}}
		tell(t, s, at(0, "us-east/a", "a", 1))
		r, answers := s.Receiver, 0
		update := func() {
			answers++
			if err := r.Update(flat.Answer(at(0, "us-east/a", []string{"a", "b"}[answers%2], 1))); err != nil {
				t.Error(err)
			}
		}
		again := func() { answers--; update() }
		for _, test := range []struct {
			about     string
			elsewhere bool // Unconfirmed is called without a time
			then      func()
			over      bool
		}{
			{"a new answer", false, update, true},
			{"the same answer", false, again, true},
			{"a confirmation", false, r.Confirm, true},
			{"to hear again", false, func() { r.Unconfirmed(nil, time.Time{}) }, true},
			{"a failure", false, func() { r.Fail(errors.New("no list")); r.Fail(errors.New("the registry is away")) }, false},
			{"to hear again elsewhere", true, func() { r.Unconfirmed(nil, time.Time{}) }, true},
			{"a new answer elsewhere", true, update, false},
		} {
			since := time.Now()
			time.Sleep(2 * time.Second) // a longer sleep would make the channel idle
			if test.elsewhere {
				since = time.Time{}
			}
			r.Unconfirmed(errors.New("the registry is away"), since)
			settle()
			c, _ := channel(t)
			got := c.Sources[0]
			if got.Error != "the registry is away" || (got.Confirmed == nil) != test.elsewhere || got.Confirmed != nil && !got.Confirmed.Equal(since) {
				t.Errorf("%s: at first the source is %+v", test.about, got)
			}
			test.then()
			settle()
			if c, _ = channel(t); (c.Sources[0].Error == "") != test.over {
				t.Errorf("%s: the source is %+v, want the error cleared: %v", test.about, c.Sources[0], test.over)
			}
			r.Unconfirmed(nil, time.Time{})
			r.Confirm()
		}
	})
}
