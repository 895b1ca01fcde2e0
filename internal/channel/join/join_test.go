package join

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/testing/flat"
)

// fakeSource sends its answer or failure when it starts. Start returns err.
type fakeSource struct {
	*discovery.Receiver
	answer  discovery.Answer
	failure error
	err     error
}

func (*fakeSource) Check(bool) error { return nil }

func (s *fakeSource) Start(r *discovery.Receiver) (discovery.Started, error) {
	s.Receiver = r
	switch {
	case s.failure != nil:
		r.Fail(s.failure)
	case len(s.answer.Priorities) > 0:
		_ = r.Update(s.answer)
	}
	return discovery.Started{}, s.err
}

func configOf(key any, name string, s discovery.Source) *Config {
	e := Entry{Mechanism: discovery.Mechanism{Name: name, Source: s}, Key: key}
	return &Config{Scheme: "x", Target: "x:///y", Entries: []Entry{e}}
}

// lastGood must not count sources that were closed, or that could not be started.
func TestStoppedSourcesAreNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := len(lastGood.entries) - lastGood.idle.Len()
		whole := &fakeSource{}
		_, c := start(t, configOf(t.Name(), "whole", whole))
		for _, names := range []string{"a b", "b c", "c d", "d a"} {
			var list []discovery.Mechanism
			for _, name := range strings.Fields(names) {
				list = append(list, discovery.Mechanism{Name: name, Source: &fakeSource{}})
			}
			whole.Mechanisms(list)
		}
		synctest.Wait()
		if n := len(lastGood.entries) - lastGood.idle.Len() - before; n < 3 {
			t.Errorf("%d sources are running, want those of the mechanism and of its list", n)
		}
		c.Close()
		c.Close()
		if _, err := Start(&recording{}, configOf("bad", "bad", &fakeSource{err: errors.New("no")})); err == nil || err.Error() != `"bad": no` {
			t.Errorf("Start = %v for a source that cannot be started", err)
		}
		synctest.Wait()
		if n := len(lastGood.entries) - lastGood.idle.Len() - before; n != 0 {
			t.Errorf("%d sources are running after all were closed", n)
		}
	})
}

// A source sends answers faster than the channel accepts them. The source must not wait, and the
// channel must get only the first and the last answer, and nothing new if these are the same.
func TestSourceFasterThanChannel(t *testing.T) {
	thousand := make([]int, 1000)
	for i := range thousand {
		thousand[i] = i + 1
	}
	for want, answers := range map[string][]int{"[1 1000]": thousand, "[1]": {1, 2, 1}} {
		synctest.Test(t, func(t *testing.T) {
			s, cc := &fakeSource{}, &recording{onUpdate: func() { time.Sleep(time.Minute) }}
			c := startOn(t, cc, configOf(nil, "", s))
			start := time.Now()
			for _, n := range answers {
				if err := s.Update(answerOf(n)); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
			}
			if time.Since(start) > 0 {
				t.Errorf("%d answers took the source %v", len(answers), time.Since(start))
			}
			time.Sleep(time.Hour)
			if got := cc.updates(); got != want {
				t.Errorf("the channel got answers of %s endpoints, want %s", got, want)
			}
			c.Close()
		})
	}
}

// The channel must get an answer only if its content has changed, whether or not its Identity has.
func TestSameContentWithOtherIdentity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, cc := &fakeSource{}, &recording{}
		c := startOn(t, cc, configOf(nil, "", s))
		defer c.Close()
		for _, step := range []struct {
			identity  string
			endpoints int
			updates   string
		}{
			{"a", 1, "[1]"}, {"b", 1, "[1]"}, {"b", 1, "[1]"}, {"", 1, "[1]"}, {"", 2, "[1 2]"}, {"c", 2, "[1 2]"},
			{"c", 2, "[1 2]"}, {"d", 3, "[1 2 3]"}, {"a", 1, "[1 2 3 1]"}, {"", 3, "[1 2 3 1 3]"}, {"a", 1, "[1 2 3 1 3 1]"},
		} {
			a := answerOf(step.endpoints)
			a.Identity = step.identity
			if err := s.Update(a); err != nil {
				t.Fatal(err)
			}
			if got := cc.updates(); got != step.updates {
				t.Fatalf("after %d endpoints with the identity %q, the channel got %s, want %s", step.endpoints, step.identity, got, step.updates)
			}
		}
	})
}

type blockingSource struct {
	fakeSource
	called, release chan struct{}
}

func (s *blockingSource) Start(r *discovery.Receiver) (discovery.Started, error) {
	started, err := s.fakeSource.Start(r)
	started.ResolveNow = func() { close(s.called); <-s.release }
	return started, err
}

// Close must not wait for a running call to the source and a running update of the channel. After
// Close, the channel must get no update, not even an answer that is already queued.
func TestNoUpdateAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &blockingSource{called: make(chan struct{}), release: make(chan struct{})}
		cc := &recording{}
		c := startOn(t, cc, configOf(nil, "", s))
		c.ResolveNow(resolver.ResolveNowOptions{})
		<-s.called
		cc.onUpdate = func() { time.Sleep(time.Minute) }
		_ = s.Update(answerOf(1))
		synctest.Wait()
		_ = s.Update(answerOf(2))
		s.Fail(errors.New("down"))
		c.Close()
		time.Sleep(time.Hour)
		if got := cc.updates(); got != "[1]" {
			t.Errorf("the channel got answers of %s endpoints, want only the one before Close", got)
		}
		close(s.release)
	})
}

func TestFailureBetweenAnswersIsRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, cc := &fakeSource{}, &recording{onUpdate: func() { time.Sleep(time.Minute) }}
		c := startOn(t, cc, configOf(nil, "", s))
		_ = s.Update(answerOf(1))
		synctest.Wait()
		_ = s.Update(answerOf(2))
		s.Fail(errors.New("down"))
		_ = s.Update(answerOf(3))
		time.Sleep(time.Hour)
		c.events.Do(func() {
			if status := c.core.Statuses()[0]; status.Failure.Text != "" || status.LastError != "down" {
				t.Errorf("the source is %+v, want no failure, and the last error down", status)
			}
		})
		c.Close()
	})
}

func answerOf(endpoints int) discovery.Answer {
	var list []flat.Endpoint
	for n := range endpoints {
		list = append(list, flat.Endpoint{Address: fmt.Sprintf("10.0.%d.%d:1", n/250, n%250+1)})
	}
	return flat.Answer(list...)
}
