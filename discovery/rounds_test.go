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

type countingSource struct {
	mu              sync.Mutex
	receivers       []*discovery.Receiver
	onStart         func()
	blockResolveNow chan struct{}
	open            int
	resolveNows     int
	updates         int
	updateErr       error
}

func (*countingSource) Check(bool) error { return nil }

func (s *countingSource) Start(r *discovery.Receiver) (discovery.Started, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.receivers = append(s.receivers, r)
	s.open++
	if s.onStart != nil {
		s.onStart()
	}
	return discovery.Started{Close: func() { s.withLock(func() { s.open-- }) }, ResolveNow: s.resolveNow}, nil
}

func (s *countingSource) resolveNow() {
	s.withLock(func() { s.resolveNows++ })
	if s.blockResolveNow != nil {
		<-s.blockResolveNow
	}
}

func (s *countingSource) withLock(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *countingSource) update(discovery.Answer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.updates++
	return s.updateErr
}

func (s *countingSource) lastReceiver() *discovery.Receiver {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.receivers[len(s.receivers)-1]
}

func (s *countingSource) summary() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprintf("started %d times, %d open, asked %d times, %d updates", len(s.receivers), s.open, s.resolveNows, s.updates)
}

// startRefreshed starts a source with a refresh interval of 5 minutes.
func startRefreshed(t *testing.T, s *countingSource) discovery.Started {
	t.Helper()
	r := new(discovery.Receiver).With(discovery.Hooks{Update: s.update, Fail: func(error) {}})
	started, err := discovery.Refreshed(s, discovery.Refresh{Every: 5 * time.Minute, RemoveAfter: 2}).Start(r)
	if err != nil {
		t.Fatal(err)
	}
	return started
}

func plain(address string) discovery.Answer {
	return discovery.Answer{Resolved: stateOf(address).Endpoints}
}

func wantSummary(t *testing.T, s *countingSource, want string) {
	t.Helper()
	if got := s.summary(); got != want {
		t.Errorf("it was %s; want %s", got, want)
	}
}

// After each interval, the source must be closed and started again, because gRPC's resolver may
// delay a lookup that it is asked for. Nothing else may be asked of it.
func TestRefreshRestarts(t *testing.T) {
	for _, updateErr := range []error{nil, errors.New("refused")} {
		synctest.Test(t, func(t *testing.T) {
			s, updates := &countingSource{updateErr: updateErr}, 0
			started := startRefreshed(t, s)
			if updateErr == nil {
				s.lastReceiver().Fail(errors.New("down"))
			} else if err := s.lastReceiver().Update(plain("a:1")); err == nil {
				t.Error("the source did not receive the error of the refused answer")
			} else {
				updates = 1
			}
			time.Sleep(6 * time.Minute)
			wantSummary(t, s, fmt.Sprintf("started 2 times, 1 open, asked 0 times, %d updates", updates))
			s.withLock(func() { s.updateErr = nil })
			_ = s.lastReceiver().Update(plain("a:1"))
			time.Sleep(6 * time.Minute)
			wantSummary(t, s, fmt.Sprintf("started 3 times, 1 open, asked 0 times, %d updates", updates+1))
			started.Close()
			started.ResolveNow()
			_ = s.lastReceiver().Update(plain("b:1"))
			wantSummary(t, s, fmt.Sprintf("started 3 times, 0 open, asked 0 times, %d updates", updates+1))
		})
	}
}

// Reports to the receiver of an earlier start must have no effect, and must not restart the timer
// of the next request.
func TestRefreshIgnoresOldRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(countingSource)
		started := startRefreshed(t, s)
		old := s.lastReceiver()
		old.Fail(errors.New("down"))
		time.Sleep(6 * time.Minute)
		_ = s.lastReceiver().Update(plain("a:1"))
		for range 4 {
			time.Sleep(2 * time.Minute)
			_ = old.Update(plain("b:1"))
			old.Fail(errors.New("down"))
			old.Confirm()
		}
		wantSummary(t, s, "started 3 times, 1 open, asked 0 times, 1 updates")
		started.Close()
	})
}

// The channel is closed while the source is being started again. The source must be closed
// immediately after its start, without a call of ResolveNow.
func TestRefreshClosedDuringRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(countingSource)
		started := startRefreshed(t, s)
		s.lastReceiver().Fail(errors.New("down"))
		s.withLock(func() { s.onStart = started.Close })
		time.Sleep(6 * time.Minute)
		started.ResolveNow()
		_ = s.lastReceiver().Update(plain("a:1"))
		time.Sleep(time.Hour)
		wantSummary(t, s, "started 2 times, 0 open, asked 0 times, 0 updates")
	})
}

// The refresh interval ends, and the channel is closed, before a call to ResolveNow has returned.
// Neither ResolveNow nor Start may be called again.
func TestRefreshIntervalEndsDuringClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &countingSource{blockResolveNow: make(chan struct{})}
		started := startRefreshed(t, s)
		s.lastReceiver().Fail(errors.New("no"))
		time.Sleep(4 * time.Minute)
		go started.ResolveNow()
		time.Sleep(2 * time.Minute)
		started.Close()
		close(s.blockResolveNow)
		time.Sleep(time.Hour)
		if got, want := s.summary(), "started 1 times, 0 open, asked 1 times, 0 updates"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}
