package join

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy/internal/testing/flat"
	"github.com/understudy-lb/understudy/internal/testing/testlog"
)

// The program's logger gets one record when a source fails, whatever further errors say, and one when
// it answers again. A source that does so all the time does not fill the log.
func TestSourceFailuresAreRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log testlog.Log
		s := &fakeSource{}
		config := configOf(nil, "", s)
		config.Target = "x:///shop"
		config.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
				return slog.Attr{}
			}
			return a
		}}))
		_, c := start(t, config)
		defer c.Close()
		good := flat.Answer(flat.Endpoint{Address: "10.0.0.1:1"})
		_ = s.Update(good)
		s.Fail(errors.New("down"))
		time.Sleep(5 * time.Second)
		s.Fail(errors.New("still down"))
		time.Sleep(7 * time.Second)
		_ = s.Update(good)
		synctest.Wait()
		const want = "msg=\"source fails\" target=x:///shop source=x reason=\"down; the previous endpoints stay in use\"\n" +
			"msg=\"source recovered\" target=x:///shop source=x after=12s\n"
		if got := log.Take(); got != want {
			t.Errorf("logged\n%s\nwant\n%s", got, want)
		}
		// A source that fails is not well again because it could not confirm its answer for a while.
		s.Fail(errors.New(strings.Repeat("long ", 1<<18)))
		s.Unconfirmed(errors.New("lost"), time.Now())
		s.Unconfirmed(nil, time.Now())
		synctest.Wait()
		if got := log.Take(); strings.Count(got, "\n") != 1 || len(got) > 1000 {
			t.Errorf("logged\n%.2000s\nwant one short line", got)
		}
		_ = s.Update(good)
		for range 1000 {
			s.Fail(errors.New("down"))
			_ = s.Update(good)
		}
		synctest.Wait()
		if n := strings.Count(log.Take(), "\n"); n > 1+2*20 {
			t.Errorf("logged %d records of a source that fails all the time", n)
		}
	})
}
