// Package sourcetest tests sources against the rules of package discovery and records their
// reports. It's meant for tests, including those of other modules.
package sourcetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy/discovery"
)

var errOver = errors.New("over")

// Run tests that a source follows the rules of discovery.Source, discovery.Started and
// discovery.Receiver. It runs several subtests, each in its own testing/synctest bubble. In each of
// them, it calls source and then tests what it returned. A bubble has a fake clock, and a real
// socket would stop it. So anything that the source depends on, such as a registry, must be a fake
// in the same bubble. By the fake clock, Run gives the source about an hour to report.
func Run(t *testing.T, source func(*testing.T) discovery.Source) {
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { checks[name](t, source(t)) })
		})
	}
}

var names = []string{"Check", "life", "refusal", "two channels", "Close inside", "again"}

var checks = map[string]func(failer, discovery.Source){
	"Check":        checkCheck,
	"life":         checkLife,
	"refusal":      checkRefusal,
	"two channels": checkTwoChannels,
	"Close inside": checkCloseInside,
	"again":        checkRestart,
}

// failer is what we need of *testing.T. This package's own tests use a fake.
type failer interface {
	Helper()
	Errorf(format string, args ...any)
}

const (
	reportTimeout = time.Minute // a source has to report something within this time
	closedTimeout = time.Hour   // how long to observe a source after Close
)

func checkReturnsAtOnce(t failer, what string, f func()) {
	t.Helper()
	start := time.Now()
	f()
	if elapsed := time.Since(start); elapsed > 0 {
		t.Errorf("%s takes %v, want it to return at once", what, elapsed)
	}
}

func checkCheck(t failer, s discovery.Source) {
	for _, read := range []bool{false, true} {
		var texts [2]string
		checkReturnsAtOnce(t, fmt.Sprintf("Check(%v)", read), func() {
			var goroutines sync.WaitGroup
			for i := range texts {
				goroutines.Go(func() { texts[i] = fmt.Sprint(s.Check(read)) })
			}
			goroutines.Wait()
		})
		if texts[0] != texts[1] {
			t.Errorf("Check(%v) returns %q and then %q", read, texts[0], texts[1])
		}
	}
}

// startSource starts a source and returns the reports of its first minute. If Start fails, the
// returned Started is nil.
func startSource(t failer, s discovery.Source, r *checkingReceiver) (started *discovery.Started, first []Report) {
	t.Helper()
	var result discovery.Started
	var err error
	checkReturnsAtOnce(t, "Start", func() { result, err = s.Start(r.listen()) })
	if err != nil {
		if check := s.Check(false); check == nil {
			t.Errorf("Start fails with %q, for which Check(false) returns nil; report errors of a server by Fail", err)
		}
		return nil, nil
	}
	time.Sleep(reportTimeout)
	synctest.Wait()
	if first = r.take(); len(first) == 0 {
		t.Errorf("no report within %v: want an answer, a failure, or Trying", reportTimeout)
	}
	return &result, first
}

func closeSource(t failer, r *checkingReceiver, started *discovery.Started) {
	t.Helper()
	if started.Close != nil {
		checkReturnsAtOnce(t, "Close", started.Close)
	}
	checkSilent(t, r)
}

// checkSilent checks that a closed source doesn't report anything. Reports in the first minute
// after Close are fine.
func checkSilent(t failer, r *checkingReceiver) {
	t.Helper()
	time.Sleep(reportTimeout)
	synctest.Wait()
	r.take()
	time.Sleep(closedTimeout)
	synctest.Wait()
	if reports := r.take(); len(reports) > 0 {
		t.Errorf("%d reports more than %v after Close, the first is: %v", len(reports), reportTimeout, reports[0])
	}
	r.check(t)
}

// checkLife runs a source for half an hour. Every ten minutes, we tell it that connections have
// failed.
func checkLife(t failer, s discovery.Source) {
	r := &checkingReceiver{t: t}
	started, _ := startSource(t, s, r)
	if started == nil {
		return
	}
	for range 3 {
		if started.ResolveNow != nil {
			checkReturnsAtOnce(t, "ResolveNow", started.ResolveNow)
		}
		if started.EndpointsFailed != nil {
			checkReturnsAtOnce(t, "EndpointsFailed", started.EndpointsFailed)
		}
		time.Sleep(10 * time.Minute)
	}
	if started.Confirmed != nil {
		checkReturnsAtOnce(t, "Confirmed", func() {
			if confirmed := started.Confirmed(); confirmed.After(time.Now()) {
				t.Errorf("Confirmed is %v in the future", time.Until(confirmed))
			}
		})
	}
	closeSource(t, r, started)
}

func checkRefusal(t failer, s discovery.Source) {
	r := &checkingReceiver{t: t, updateErr: errors.New("the channel rejects it")}
	if started, _ := startSource(t, s, r); started != nil {
		time.Sleep(10 * time.Minute)
		closeSource(t, r, started)
	}
}

func checkTwoChannels(t failer, s discovery.Source) {
	a, b := &checkingReceiver{t: t}, &checkingReceiver{t: t}
	first, _ := startSource(t, s, a)
	second, _ := startSource(t, s, b)
	if first == nil || second == nil {
		return
	}
	if !a.answered() || !b.answered() {
		time.Sleep(10 * reportTimeout) // if the source has failed, it needs time to retry
	}
	if a.answered() != b.answered() {
		t.Errorf("only one of two channels has an answer: the first %v, the second %v", a.answered(), b.answered())
	}
	b.take()
	if first.Close != nil {
		first.Close()
	}
	synctest.Wait()
	for _, report := range b.take() {
		if report.Failure != nil && !b.failedBefore(report.Failure) {
			t.Errorf("after the first channel is closed, the second one fails: %v", report.Failure)
		}
	}
	closeSource(t, b, second)
}

func checkCloseInside(t failer, s discovery.Source) {
	r := &checkingReceiver{t: t}
	var mu sync.Mutex
	var pendingClose func()
	r.onReport = func() {
		mu.Lock()
		closeOnce := pendingClose
		pendingClose = nil
		mu.Unlock()
		if closeOnce == nil {
			return // Start hasn't returned yet, or the source is closed
		}
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			closeOnce()
		}()
		select {
		case <-closed:
		case <-time.After(reportTimeout):
			t.Errorf("Close does not return while the receiver is called: it waits for that call")
		}
	}
	started, err := s.Start(r.listen())
	if err != nil {
		return
	}
	mu.Lock()
	if pendingClose = started.Close; pendingClose == nil {
		pendingClose = func() {}
	}
	mu.Unlock()
	time.Sleep(reportTimeout)
	if started.ResolveNow != nil {
		mu.Lock()
		isOpen := pendingClose != nil
		mu.Unlock()
		if isOpen {
			started.ResolveNow()
		}
	}
	time.Sleep(reportTimeout)
	mu.Lock()
	closeOnce := pendingClose
	mu.Unlock()
	if closeOnce != nil {
		closeOnce()
	}
	checkSilent(t, r)
}

// checkRestart starts a source twice, as if the channel had been idle in between.
func checkRestart(t failer, s discovery.Source) {
	var answered [2]bool
	for i := range answered {
		r := &checkingReceiver{t: t}
		started, _ := startSource(t, s, r)
		if started == nil {
			return
		}
		if !r.answered() {
			time.Sleep(10 * reportTimeout)
		}
		answered[i] = r.answered()
		closeSource(t, r, started)
	}
	if answered[0] != answered[1] {
		t.Errorf("the source has an answer after the first start: %v; after the second start: %v", answered[0], answered[1])
	}
}
