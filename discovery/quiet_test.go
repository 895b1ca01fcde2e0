package discovery_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
)

// The last answer of a source that pushes must count as confirmed until the source fails or is
// closed, however old the answer is.
func TestAQuietSourceConfirmsItsAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, other := &scripted{}, &scripted{}
		b, cc := one(s), &channel{}
		r := build(t, b, cc)
		s.say("10.0.0.1:1")
		<-time.After(2 * time.Hour)
		build(t, one(other), &channel{})
		other.say("10.0.0.2:1")
		r.Close()
		<-time.After(50 * time.Minute)
		build(t, b, cc)
		s.Fail(errors.New("down"))
		if got, want := cc.take(), `state 10.0.0.1:1["child0" "/"]`+"\n"+`state 10.0.0.1:1["child0" "/"]`; got != want {
			t.Errorf("channel saw\n%s\nwant\n%s", got, want)
		}
	})
}

type failing struct{}

func (failing) Check(bool) error { return nil }

func (failing) Start(r *discovery.Receiver) (discovery.Started, error) {
	r.Fail(errors.New("bad cluster"))
	return discovery.Started{}, nil
}

// The answer of a discovery mechanism in a list must count as confirmed, however old it is, until
// the mechanism has another source.
func TestAPartConfirmsItsAnswerUntilItIsReplaced(t *testing.T) {
	for _, quiet := range []time.Duration{10 * time.Minute, 2 * time.Hour} {
		t.Run(fmt.Sprint(quiet), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				whole, part := &scripted{}, &scripted{}
				b, cc := one(whole), &channel{}
				r := build(t, b, cc)
				whole.Parts([]discovery.Mechanism{{Name: "a", Source: part}})
				part.say("10.0.0.1:1")
				<-time.After(quiet)
				whole.Parts([]discovery.Mechanism{{Name: "a", Source: failing{}}})
				<-time.After(40 * time.Minute)
				r.Close()
				cc.take()
				for _, want := range []string{`state 10.0.0.1:1["a/child0" "/"]`, "error x: a: bad cluster"} {
					r := build(t, b, cc)
					whole.Parts([]discovery.Mechanism{{Name: "a", Source: failing{}}})
					r.Close()
					if got := cc.take(); got != want {
						t.Errorf("channel saw %q, want %q", got, want)
					}
					<-time.After(21 * time.Minute)
				}
			})
		})
	}
}

// A discovery mechanism is removed from the list and added again within an hour. It must use its
// last answer again, however old that is.
func TestAPartThatIsTakenOutConfirmsItsAnswer(t *testing.T) {
	for _, quiet := range []time.Duration{10 * time.Minute, 2 * time.Hour} {
		t.Run(fmt.Sprint(quiet), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t)
				a, b := &scripted{}, &scripted{}
				l.parts("a", a, "b", b)
				b.say("10.0.0.2:1")
				a.say("10.0.0.1:1")
				l.saw(`state 10.0.0.1:1["a/child0" "/"] 10.0.0.2:1["b/child0" "/"]`)
				<-time.After(quiet)
				l.parts("b", b)
				l.saw(`state 10.0.0.2:1["b/child0" "/"]`)
				<-time.After(time.Minute)
				l.parts("a", failing{}, "b", b)
				l.saw(`state 10.0.0.1:1["a/child0" "/"] 10.0.0.2:1["b/child0" "/"]`)
			})
		})
	}
}

// The stored answer of a channel was dropped because the store was full. When there is room again,
// a confirmation must store the answer again.
func TestAnAnswerThatMadeRoomIsKeptAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{}
		b, cc := one(s), &channel{}
		r := build(t, b, cc)
		s.say("10.0.0.1:1")
		var others []resolver.Resolver
		for range 1000 {
			other := &scripted{}
			others = append(others, build(t, one(other), &channel{}))
			other.say("10.0.0.2:1")
		}
		for _, o := range others {
			o.Close()
		}
		for range 20 {
			<-time.After(10 * time.Minute)
			s.say("10.0.0.1:1")
		}
		r.Close()
		cc.take()
		r = build(t, b, cc)
		s.Fail(errors.New("down"))
		r.Close()
		if got, want := cc.take(), `state 10.0.0.1:1["child0" "/"]`; got != want {
			t.Errorf("channel saw %q, want %q", got, want)
		}
	})
}

type nesting struct{ of discovery.Source }

func (nesting) Check(bool) error { return nil }

func (n nesting) Start(r *discovery.Receiver) (discovery.Started, error) {
	r.Parts([]discovery.Mechanism{{Name: "inner", Source: n.of}})
	return discovery.Started{}, nil
}

// A mechanism in a list sends a list itself. It must be refused: calls must fail with an error, and
// the sources of the inner list must not be started.
func TestPartsOfParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		inner := &scripted{inStart: func(*scripted) { t.Error("the inner source is started") }}
		l.parts("a", nesting{inner})
		l.saw("error x: a: it is a part and gives a list of parts: want these in the list that it is in")
	})
}
