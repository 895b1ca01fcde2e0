package discovery_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/testing/flat"
)

// Each list has its own time to wait: one that was taken back leaves nothing of its own
// to the next.
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

// A list that changes again and again, faster than the time to wait, is used all the same.
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

// restless is a source that says something new without a pause once it is started, and
// whose Close waits for the goroutine that does so, as that of gRPC's DNS resolver.
type restless struct {
	closed atomic.Bool
	over   chan struct{}
}

func (*restless) Check(bool) error { return nil }

func (r *restless) Start(to *discovery.Receiver) (discovery.Started, error) {
	r.over = make(chan struct{})
	say := func(round int) {
		_ = to.Update(flat.Answer(flat.Endpoint{Address: fmt.Sprintf("10.0.0.1:%d", 1+round%1000)}))
	}
	say(0)
	go func() {
		defer close(r.over)
		for round := 1; !r.closed.Load(); round++ {
			say(round)
		}
	}()
	return discovery.Started{Close: func() {
		r.closed.Store(true)
		<-r.over
	}}, nil
}

// A source that is replaced while it answers may wait for that in Close: nothing that its
// answer needs is held meanwhile. The answer in its place is a large one, which takes its
// time.
func TestPartReplacedWhileItAnswers(t *testing.T) {
	l := newLab(t)
	before, now := &restless{}, &scripted{}
	l.parts("a", before)
	l.parts("a", now)
	var many []string
	for i := range 20_000 {
		many = append(many, fmt.Sprintf("10.1.%d.%d:1", i/200, i%200))
	}
	go now.say(many...)
	select {
	case <-before.over:
	case <-time.After(20 * time.Second):
		t.Fatal("to close the source that was replaced does not end")
	}
}

// Text that is not UTF-8 cannot be encoded, so it cannot be compared either: each answer
// with some counts as new.
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
