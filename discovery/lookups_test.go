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
	mu          sync.Mutex
	receivers   []*discovery.Receiver
	onStart     func()
	open        int
	resolveNows int
	updates     int
	updateErr   error
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

// For each lookup, the source must be started, and closed after its first report. Its ResolveNow must
// not be called, because gRPC's resolver may delay a lookup that it is asked for. A failed lookup, or
// a rejected answer, must be followed by another one before the interval has ended.
func TestRefreshStartsForEachLookup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(countingSource)
		started := startRefreshed(t, s)
		synctest.Wait()
		wantSummary(t, s, "started 1 times, 1 open, asked 0 times, 0 updates")
		s.lastReceiver().Fail(errors.New("down"))
		time.Sleep(2 * time.Second)
		wantSummary(t, s, "started 2 times, 1 open, asked 0 times, 0 updates")
		s.withLock(func() { s.updateErr = errors.New("rejected") })
		_ = s.lastReceiver().Update(plain("a:1"))
		time.Sleep(3 * time.Second)
		wantSummary(t, s, "started 3 times, 1 open, asked 0 times, 1 updates")
		s.withLock(func() { s.updateErr = nil })
		_ = s.lastReceiver().Update(plain("a:1"))
		synctest.Wait()
		wantSummary(t, s, "started 3 times, 0 open, asked 0 times, 2 updates")
		time.Sleep(6 * time.Minute)
		wantSummary(t, s, "started 4 times, 1 open, asked 0 times, 2 updates")
		started.Close()
		started.ResolveNow()
		_ = s.lastReceiver().Update(plain("b:1"))
		time.Sleep(time.Hour)
		wantSummary(t, s, "started 4 times, 0 open, asked 0 times, 2 updates")
	})
}

// Reports after the first one of a lookup must have no effect.
func TestRefreshIgnoresLaterReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(countingSource)
		started := startRefreshed(t, s)
		synctest.Wait()
		for range 2 {
			_ = s.lastReceiver().Update(plain("a:1"))
			s.lastReceiver().Fail(errors.New("down"))
			s.lastReceiver().Confirm()
		}
		time.Sleep(2 * time.Minute)
		_ = s.lastReceiver().Update(plain("b:1"))
		wantSummary(t, s, "started 1 times, 0 open, asked 0 times, 1 updates")
		started.Close()
		synctest.Wait()
	})
}

// If the channel is closed while the source is being started, the source must be closed after its
// start.
func TestRefreshClosedDuringStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(countingSource)
		started := startRefreshed(t, s)
		synctest.Wait()
		_ = s.lastReceiver().Update(plain("a:1"))
		s.withLock(func() { s.onStart = started.Close })
		time.Sleep(6 * time.Minute)
		started.ResolveNow()
		_ = s.lastReceiver().Update(plain("a:1"))
		time.Sleep(time.Hour)
		wantSummary(t, s, "started 2 times, 0 open, asked 0 times, 1 updates")
	})
}
