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

type steered struct {
	mu        sync.Mutex
	receivers []*discovery.Receiver
	closes    func()
	busy      chan struct{}
	open      int
	asked     int
	updates   int
	refused   error
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

func (s *steered) take(discovery.Answer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.updates++
	return s.refused
}

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

// After a failure or a refused answer, a gRPC resolver would delay the lookup, because it waits for
// its backoff. The source must therefore be closed and started again.
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

// Reports to the receiver of an earlier start must have no effect, not even on the timer of the
// next request.
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

// The channel closes while the source is being started again. The source must be closed right after
// its start, without a call of ResolveNow.
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

// The channel closes, and the interval ends, while ResolveNow runs. Neither ResolveNow nor Start
// may be called again.
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
