package page

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy/internal/testing/flat"
)

// A source calls Unconfirmed with an error. The page must show the error until the source confirms
// its answer. A new answer also clears the error, unless Unconfirmed was called without a time.
func TestPageShowsErrorUntilConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeSource{reachable: map[string]bool{"a": true, "b": true}}
		openChannel(t, s, newEndpoint(0, "us-east/a", "a", 1))
		r, answers := s.Receiver, 0
		update := func() {
			answers++
			if err := r.Update(flat.Answer(newEndpoint(0, "us-east/a", []string{"a", "b"}[answers%2], 1))); err != nil {
				t.Error(err)
			}
		}
		repeat := func() { answers--; update() }
		for _, test := range []struct {
			about       string
			withoutTime bool
			action      func()
			cleared     bool
		}{
			{"a new answer", false, update, true},
			{"the same answer", false, repeat, true},
			{"a confirmation", false, r.Confirm, true},
			{"to hear again", false, func() { r.Unconfirmed(nil, time.Time{}) }, true},
			{"a failure", false, func() { r.Fail(errors.New("no list")); r.Fail(errors.New("the registry is away")) }, false},
			{"to hear again elsewhere", true, func() { r.Unconfirmed(nil, time.Time{}) }, true},
			{"a new answer elsewhere", true, update, false},
		} {
			since := time.Now()
			time.Sleep(2 * time.Second) // must be shorter than the idle timeout
			if test.withoutTime {
				since = time.Time{}
			}
			r.Unconfirmed(errors.New("the registry is away"), since)
			settle()
			c, _ := channel(t)
			got := c.Sources[0]
			if got.Error != "the registry is away" || (got.Confirmed == nil) != test.withoutTime || got.Confirmed != nil && !got.Confirmed.Equal(since) {
				t.Errorf("%s: at first the source is %+v", test.about, got)
			}
			test.action()
			settle()
			if c, _ = channel(t); (c.Sources[0].Error == "") != test.cleared {
				t.Errorf("%s: the source is %+v, want the error cleared: %v", test.about, c.Sources[0], test.cleared)
			}
			r.Unconfirmed(nil, time.Time{})
			r.Confirm()
		}
	})
}
