package discovery_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy/discovery"
)

// steered is a source that counts its starts, requests and updates.
type steered struct {
	mu        sync.Mutex
	receivers []*discovery.Receiver // one for each start
	closes    func()                // if set, the next start calls it
	busy      chan struct{}         // if set, ResolveNow blocks until it is closed
	open      int
	asked     int
	updates   int   // number of accepted updates
	refused   error // error that the receiver returns for each update
}

func (*steered) Check(bool) error { return nil }

func (s *steered) Start(r *discovery.Receiver) (discovery.Started, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.receivers = append(s.receivers, r)
	s.open++
	if s.closes != nil {
		s.closes()
	}
	return discovery.Started{Close: func() { s.note(func() { s.open-- }) }, ResolveNow: s.ask}, nil
}

func (s *steered) ask() {
	s.note(func() { s.asked++ })
	if s.busy != nil {
		<-s.busy
	}
}

func (s *steered) note(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// take counts an update and returns the error in refused.
func (s *steered) take(discovery.Answer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.updates++
	return s.refused
}

// last returns the receiver of the most recent start.
func (s *steered) last() *discovery.Receiver {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.receivers[len(s.receivers)-1]
}

func (s *steered) saw() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprintf("started %d times, %d open, asked %d times, %d updates", len(s.receivers), s.open, s.asked, s.updates)
}

// rounds starts a source with a refresh interval of 5 minutes, which is longer than the pause of
// gRPC's DNS resolver.
func rounds(t *testing.T, s *steered) discovery.Started {
	t.Helper()
	r := new(discovery.Receiver).With(discovery.Hooks{Update: s.take, Fail: func(error) {}})
	started, err := discovery.Refreshed(s, discovery.Refresh{Every: 5 * time.Minute, RemoveAfter: 2}).Start(r)
	if err != nil {
		t.Fatal(err)
	}
	return started
}

func plain(address string) discovery.Answer {
	return discovery.Answer{Resolved: stateOf(address).Endpoints}
}

func wantSaw(t *testing.T, s *steered, want string) {
	t.Helper()
	if got := s.saw(); got != want {
		t.Errorf("it was %s; want %s", got, want)
	}
}

// After a failure or a refused answer, a gRPC resolver is in backoff and would delay ResolveNow.
// The source is closed and started again instead.
func TestRefreshStartsAgainAfterAFailure(t *testing.T) {
	for _, refused := range []error{nil, errors.New("refused")} {
		synctest.Test(t, func(t *testing.T) {
			s, updates := &steered{refused: refused}, 0
			started := rounds(t, s)
			if refused == nil {
				s.last().Fail(errors.New("down"))
			} else if err := s.last().Update(plain("a:1")); err == nil {
				t.Error("the source did not receive the error of the refused answer")
			} else {
				updates = 1
			}
			time.Sleep(6 * time.Minute)
			wantSaw(t, s, fmt.Sprintf("started 2 times, 1 open, asked 0 times, %d updates", updates))
			s.note(func() { s.refused = nil })
			_ = s.last().Update(plain("a:1"))
			time.Sleep(6 * time.Minute)
			wantSaw(t, s, fmt.Sprintf("started 2 times, 1 open, asked 1 times, %d updates", updates+1))
			started.Close()
			started.ResolveNow()
			_ = s.last().Update(plain("b:1"))
			wantSaw(t, s, fmt.Sprintf("started 2 times, 0 open, asked 1 times, %d updates", updates+1))
		})
	}
}

// When a source has been closed and started again, reports through the old receiver have no effect,
// not even on the timer.
func TestRefreshForgetsOldRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(steered)
		started := rounds(t, s)
		old := s.last()
		old.Fail(errors.New("down"))
		time.Sleep(6 * time.Minute)
		_ = s.last().Update(plain("a:1"))
		for range 4 {
			time.Sleep(2 * time.Minute)
			_ = old.Update(plain("b:1"))
			old.Fail(errors.New("down"))
			old.Confirm()
		}
		wantSaw(t, s, "started 2 times, 1 open, asked 1 times, 1 updates")
		started.Close()
	})
}

// If Close is called while the source is being restarted, the source is closed right after the
// start and gets no request.
func TestRefreshIsClosedInARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(steered)
		started := rounds(t, s)
		s.last().Fail(errors.New("down"))
		s.note(func() { s.closes = started.Close })
		time.Sleep(6 * time.Minute)
		started.ResolveNow()
		_ = s.last().Update(plain("a:1"))
		time.Sleep(time.Hour)
		wantSaw(t, s, "started 2 times, 0 open, asked 0 times, 0 updates")
	})
}

// The channel is closed during a call of ResolveNow, and the interval ends during that call, too.
// The source then gets no further request and is not started again.
func TestAnIntervalThatIsOverAsTheChannelCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &steered{busy: make(chan struct{})}
		started := rounds(t, s)
		s.last().Fail(errors.New("no"))
		time.Sleep(4 * time.Minute)
		go started.ResolveNow()
		time.Sleep(2 * time.Minute)
		started.Close()
		close(s.busy)
		time.Sleep(time.Hour)
		if got, want := s.saw(), "started 1 times, 0 open, asked 1 times, 0 updates"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}
