package discovery_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy/discovery"
)

// A channel rejects an answer that another channel has applied before. The source must learn of it.
func TestSharedSourceLearnsOfLaterRejection(t *testing.T) {
	runShared(t, 0, func(s *sharedLab) {
		source := discovery.Shared(t.Name(), 0, s.countedSource)
		open := func(after time.Duration, err error) {
			started, startErr := source.Start(new(discovery.Receiver).With(discovery.Hooks{Update: func(discovery.Answer) error {
				time.Sleep(after)
				return err
			}}))
			if startErr != nil {
				t.Fatal(startErr)
			}
			time.AfterFunc(time.Hour, started.Close)
		}
		open(0, nil)
		open(time.Second, errors.New("no"))
		if err := s.raw.Update(discovery.Answer{Version: "1"}); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if s.resolveNows != 1 {
			t.Errorf("the source was asked to resolve again %d times, want once", s.resolveNows)
		}
		time.Sleep(time.Hour)
	})
}

// The only channel hangs while it applies an answer, and is closed. The source must be able to go
// on, and be closed.
func TestSharedSourceIsClosedWhileItsChannelHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &answeringSource{}
		release := make(chan struct{})
		started, err := discovery.Shared(t.Name(), 0, s).Start(new(discovery.Receiver).With(discovery.Hooks{
			Update: func(discovery.Answer) error { <-release; return nil },
		}))
		if err != nil {
			t.Fatal(err)
		}
		go s.raw.Update(discovery.Answer{Version: "1"})
		synctest.Wait()
		started.ResolveNow()
		synctest.Wait()
		started.Close()
		synctest.Wait()
		if s.closeCount != 1 {
			t.Errorf("the source was closed %d times, want once", s.closeCount)
		}
		close(release)
	})
}

type answeringSource struct{ fakeSource }

func (s *answeringSource) Start(r *discovery.Receiver) (discovery.Started, error) {
	started, err := s.fakeSource.Start(r)
	started.ResolveNow = func() { _ = s.raw.Update(discovery.Answer{Version: "2"}) }
	return started, err
}

// A source is unconfirmed until it says otherwise, and then unconfirmed until its next answer. A
// channel that hangs and misses the second of these must not stay unconfirmed.
func TestHangingChannelDoesNotStayUnconfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeSource{}
		release := make(chan struct{})
		var doubt error
		var since time.Time
		confirm := func() {
			if !since.IsZero() { // otherwise the source itself ends the doubt
				doubt = nil
			}
		}
		started, err := discovery.Shared(t.Name(), 0, s).Start(new(discovery.Receiver).With(discovery.Hooks{
			Update:      func(discovery.Answer) error { <-release; confirm(); return nil },
			Confirm:     confirm,
			Unconfirmed: func(err error, at time.Time) { doubt, since = err, at },
		}))
		if err != nil {
			t.Fatal(err)
		}
		defer started.Close()
		s.raw.Unconfirmed(errors.New("lost"), time.Time{})
		synctest.Wait()
		go s.raw.Update(discovery.Answer{Version: "1"})
		synctest.Wait()
		s.raw.Unconfirmed(errors.New("lost"), time.Now())
		s.raw.Confirm()
		close(release)
		synctest.Wait()
		if doubt != nil {
			t.Errorf("the channel stays unconfirmed: %v", doubt)
		}
	})
}
