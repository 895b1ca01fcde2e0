package share_test

import (
	"testing"
	"time"

	"github.com/understudy-lb/understudy/internal/core/share"
)

// A stream that stays open, and one that ends late, are good answers of a last priority that failed.
func TestStreamsEndFailing(t *testing.T) {
	for name, answer := range map[string]func(s *share.Share, now time.Duration){
		"open": func(s *share.Share, now time.Duration) {
			s.Begin(now, 0, "/new", nil)
			s.Look(now + time.Minute)
		},
		"partial": func(s *share.Share, now time.Duration) {
			s.End(now+time.Minute, s.Begin(now, time.Minute, "", nil), share.Partial)
		},
	} {
		now, s := time.Hour, share.New(time.Hour, share.Config{})
		s.SetLast(now, true)
		for range 12 {
			s.End(now, s.Begin(now, time.Second, "", nil), share.Unavailable)
			now += time.Second
		}
		if !s.Standing().Fails {
			t.Errorf("%s: twelve errors in a row are no failure", name)
		}
		if answer(s, now); s.Standing().Fails {
			t.Errorf("%s: it still fails", name)
		}
	}
}
