// Package sourcetest tests sources against the rules of package discovery and records their
// reports. It is for tests, including those of other modules.
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

// Run tests that a source keeps the rules of discovery.Source, discovery.Started and
// discovery.Receiver. It runs several subtests, each in its own bubble of testing/synctest. Each
// one calls the function source in its bubble and tests the source that the function returns. The
// clock of a bubble is fake, and a real socket would stop it, so the source's dependencies, such as
// a registry, must be fakes in the same bubble. Run lets the source report for about an hour.
//
// It checks that
//   - Check, Start and the functions of Started return at once, and Start fails only for problems that Check reports;
//   - within a minute the source reports an answer, a failure, or what it is trying;
//   - answers keep the rules of their fields, are not modified afterwards, and are equal if their Identity fields are equal;
//   - equal failures have equal texts, each of one line;
//   - a refused answer is not repeated without a pause;
//   - a second channel gets the same answer as the first, and keeps it when the first is closed;
//   - Close may be called from inside the receiver and ends the source, and Start works again.
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
	"two channels": checkTwo,
	"Close inside": checkCloseInside,
	"again":        checkAgain,
}

// failer is the part of *testing.T that the checks use. This package's own tests use a fake.
type failer interface {
	Helper()
	Errorf(format string, args ...any)
}

const (
	patience = time.Minute // time within which a source must report something
	quiet    = time.Hour   // time for which a closed source is observed
)

func atOnce(t failer, what string, f func()) {
	t.Helper()
	began := time.Now()
	f()
	if took := time.Since(began); took > 0 {
		t.Errorf("%s takes %v, want it to return at once", what, took)
	}
}

func checkCheck(t failer, s discovery.Source) {
	for _, read := range []bool{false, true} {
		var texts [2]string
		atOnce(t, fmt.Sprintf("Check(%v)", read), func() {
			var both sync.WaitGroup
			for i := range texts {
				both.Go(func() { texts[i] = fmt.Sprint(s.Check(read)) })
			}
			both.Wait()
		})
		if texts[0] != texts[1] {
			t.Errorf("Check(%v) says %q and then %q", read, texts[0], texts[1])
		}
	}
}

// begin starts a source and returns the reports of its first minute. If Start fails, started is
// nil.
func begin(t failer, s discovery.Source, r *keeper) (started *discovery.Started, first []Told) {
	t.Helper()
	var of discovery.Started
	var err error
	atOnce(t, "Start", func() { of, err = s.Start(r.listen()) })
	if err != nil {
		if check := s.Check(false); check == nil {
			t.Errorf("Start fails with %q, for which Check(false) returns nil; report errors of a server by Fail", err)
		}
		return nil, nil
	}
	time.Sleep(patience)
	synctest.Wait()
	if first = r.take(); len(first) == 0 {
		t.Errorf("no report within %v: want an answer, a failure, or Trying", patience)
	}
	return &of, first
}

func end(t failer, r *keeper, started *discovery.Started) {
	t.Helper()
	if started.Close != nil {
		atOnce(t, "Close", started.Close)
	}
	silent(t, r)
}

// silent checks that a closed source sends no reports, except in the first minute after Close.
func silent(t failer, r *keeper) {
	t.Helper()
	time.Sleep(patience)
	synctest.Wait()
	r.take()
	time.Sleep(quiet)
	synctest.Wait()
	if told := r.take(); len(told) > 0 {
		t.Errorf("%d reports more than %v after Close, the first is: %v", len(told), patience, told[0])
	}
	r.check(t)
}

// checkLife runs a source for half an hour. In this time, connections to endpoints fail.
func checkLife(t failer, s discovery.Source) {
	r := &keeper{t: t}
	started, _ := begin(t, s, r)
	if started == nil {
		return
	}
	for range 3 {
		if started.ResolveNow != nil {
			atOnce(t, "ResolveNow", started.ResolveNow)
		}
		if started.EndpointsFailed != nil {
			atOnce(t, "EndpointsFailed", started.EndpointsFailed)
		}
		time.Sleep(10 * time.Minute)
	}
	if started.Confirmed != nil {
		atOnce(t, "Confirmed", func() {
			if at := started.Confirmed(); at.After(time.Now()) {
				t.Errorf("Confirmed is %v from now", time.Until(at))
			}
		})
	}
	end(t, r, started)
}

func checkRefusal(t failer, s discovery.Source) {
	r := &keeper{t: t, refusal: errors.New("the channel does not take it")}
	if started, _ := begin(t, s, r); started != nil {
		time.Sleep(10 * time.Minute)
		end(t, r, started)
	}
}

func checkTwo(t failer, s discovery.Source) {
	a, b := &keeper{t: t}, &keeper{t: t}
	first, _ := begin(t, s, a)
	second, _ := begin(t, s, b)
	if first == nil || second == nil {
		return
	}
	if !a.answered() || !b.answered() {
		time.Sleep(10 * patience) // a source that fails first gets more time
	}
	if a.answered() != b.answered() {
		t.Errorf("only one of two channels has an answer: the first %v, the second %v", a.answered(), b.answered())
	}
	b.take()
	if first.Close != nil {
		first.Close()
	}
	synctest.Wait()
	for _, told := range b.take() {
		if told.Failure != nil && !b.failedBefore(told.Failure) {
			t.Errorf("once the first channel is closed the second one fails: %v", told.Failure)
		}
	}
	end(t, b, second)
}

func checkCloseInside(t failer, s discovery.Source) {
	r := &keeper{t: t}
	var mu sync.Mutex
	var toClose func()
	r.inside = func() {
		mu.Lock()
		shut := toClose
		toClose = nil
		mu.Unlock()
		if shut == nil {
			return // Start has not returned yet, or the source is closed
		}
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			shut()
		}()
		select {
		case <-closed:
		case <-time.After(patience):
			t.Errorf("Close does not return while the receiver is called: it waits for that call")
		}
	}
	started, err := s.Start(r.listen())
	if err != nil {
		return
	}
	mu.Lock()
	if toClose = started.Close; toClose == nil {
		toClose = func() {}
	}
	mu.Unlock()
	time.Sleep(patience)
	if started.ResolveNow != nil {
		mu.Lock()
		open := toClose != nil
		mu.Unlock()
		if open {
			started.ResolveNow()
		}
	}
	time.Sleep(patience)
	mu.Lock()
	shut := toClose
	mu.Unlock()
	if shut != nil {
		shut()
	}
	silent(t, r)
}

// checkAgain starts a source a second time, as a channel does when it leaves idle mode.
func checkAgain(t failer, s discovery.Source) {
	var answered [2]bool
	for i := range answered {
		r := &keeper{t: t}
		started, _ := begin(t, s, r)
		if started == nil {
			return
		}
		if !r.answered() {
			time.Sleep(10 * patience)
		}
		answered[i] = r.answered()
		end(t, r, started)
	}
	if answered[0] != answered[1] {
		t.Errorf("it has an answer when it is first started: %v; and when it is started again: %v", answered[0], answered[1])
	}
}
