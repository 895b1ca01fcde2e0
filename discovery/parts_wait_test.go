package discovery_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/testing/flat"
)

// A new list may wait for the full failover timeout, even if the previous list has already waited
// for it.
func TestTimeToWaitIsThatOfTheList(t *testing.T) {
	for name, between := range map[string]func(l *lab, a *scripted){
		"taken back":         func(l *lab, a *scripted) { l.parts("a", a) },
		"waited for in vain": func(*lab, *scripted) {},
		"answered, and taken back": func(l *lab, a *scripted) {
			l.whole.say("10.0.0.1:1")
			l.cc.take()
			l.parts("a", a)
			a.say("10.0.0.1:1")
			l.cc.take()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t)
				a, b, c := &scripted{}, &scripted{}, &scripted{}
				l.parts("a", a)
				a.say("10.0.0.1:1")
				l.saw(`state 10.0.0.1:1["a/child0" "/"]`)
				l.parts("b", b, "c", c)
				between(l, a)
				time.Sleep(10 * time.Second)
				synctest.Wait()
				d, e := &scripted{}, &scripted{}
				l.parts("d", d, "e", e)
				time.Sleep(9 * time.Second)
				e.say("10.0.0.5:1")
				l.saw("")
				time.Sleep(time.Second - time.Nanosecond)
				l.saw("")
				time.Sleep(time.Nanosecond)
				synctest.Wait()
				l.saw(`state 10.0.0.5:1["e/child0" "/"]`)
			})
		})
	}
}

// New lists keep arriving within the failover timeout. One of them must take effect nevertheless.
func TestListsThatFollowOneAnotherAreNotWaitedForWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		a, b := &scripted{}, &scripted{}
		l.parts("a", a)
		a.say("10.0.0.1:1")
		l.saw(`state 10.0.0.1:1["a/child0" "/"]`)
		l.parts("b", b)
		b.Fail(errors.New("no b"))
		for i := range 3 {
			time.Sleep(4 * time.Second)
			list := []any{"silent", &scripted{}, fmt.Sprint(i), &scripted{inStart: func(s *scripted) { s.say("10.0.0.2:1") }}}
			l.parts(list...)
		}
		synctest.Wait()
		l.saw(`state 10.0.0.2:1["1/child0" "/"]`)
	})
}

// waits is a source that answers once, on a goroutine of its own. Like that of a gRPC resolver, its
// Close waits for this goroutine.
type waits struct {
	rest            func()
	over            chan struct{}
	closing, closed atomic.Bool
}

func (*waits) Check(bool) error { return nil }

func (w *waits) Start(to *discovery.Receiver) (discovery.Started, error) {
	w.over = make(chan struct{})
	go func() {
		defer close(w.over)
		w.rest()
		_ = to.Update(discovery.Answer{Resolved: stateOf("10.0.0.1:1").Endpoints})
	}()
	return discovery.Started{Close: func() {
		w.closing.Store(true)
		<-w.over
		w.closed.Store(true)
	}}, nil
}

// A source is replaced while it sends an answer. The answer updates the channel on the source's own
// stack, which takes a minute, and the source's Close waits for that. This must not deadlock: no
// lock that the answer needs may be held during Close.
func TestPartReplacedWhileItAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.cc.onUpdate = func(resolver.State) { time.Sleep(time.Minute) }
		part := &waits{rest: func() { time.Sleep(time.Second) }}
		l.whole.raw.Parts([]discovery.Mechanism{{Name: "a", Source: part}})
		time.Sleep(2 * time.Second)
		_ = l.whole.raw.Update(flat.Answer(flat.Endpoint{Address: "10.0.0.2:1"}))
		time.Sleep(90 * time.Second)
		synctest.Wait()
		if !part.closing.Load() || part.closed.Load() {
			t.Errorf("during the update with the replacement, Close of the source was called: %v, has returned: %v; want only the call", part.closing.Load(), part.closed.Load())
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if !part.closed.Load() {
			t.Error("Close of the source does not return after the channel has accepted the answer")
		}
		l.saw("state 10.0.0.1:1[\"a\" \"/\"]\nstate 10.0.0.2:1[\"child0\" \"/\"]")
	})
}

// Answers with text that is not UTF-8 cannot be compared, so each must count as new.
func TestAnswersThatAreNotUTF8AreTold(t *testing.T) {
	cc, s := &channel{}, &scripted{}
	r := build(t, one(s), cc)
	defer r.Close()
	for i := range 3 {
		address := fmt.Sprintf("10.0.0.%d:1", i)
		answer := flat.Answer(flat.Endpoint{Address: address})
		answer.Service = "caf\xe9"
		if err := s.Update(answer); err != nil {
			t.Fatal(err)
		}
		if got, want := cc.take(), fmt.Sprintf(`state %s["child0" "/"]`, address); got != want {
			t.Errorf("channel saw %q, want %q", got, want)
		}
	}
}
