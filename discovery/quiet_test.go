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

// While a source is open and has not failed, its last answer must count as confirmed, however old
// the answer is.
func TestOpenSourceConfirmsItsAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, other := &fakeSource{}, &fakeSource{}
		b, cc := newSourceBuilder(s), &channel{}
		r := build(t, b, cc)
		s.sendAddresses("10.0.0.1:1")
		<-time.After(2 * time.Hour)
		build(t, newSourceBuilder(other), &channel{})
		other.sendAddresses("10.0.0.2:1")
		r.Close()
		<-time.After(50 * time.Minute)
		build(t, b, cc)
		s.Fail(errors.New("down"))
		if got, want := cc.take(), `state 10.0.0.1:1["child0" "/"]`+"\n"+`state 10.0.0.1:1["child0" "/"]`; got != want {
			t.Errorf("channel saw\n%s\nwant\n%s", got, want)
		}
	})
}

type failingSource struct{}

func (failingSource) Check(bool) error { return nil }

func (failingSource) Start(r *discovery.Receiver) (discovery.Started, error) {
	r.Fail(errors.New("bad cluster"))
	return discovery.Started{}, nil
}

// The answer of a discovery mechanism in a list must count as confirmed, however old it is, until a
// new list gives the mechanism another source.
func TestMechanismConfirmsAnswerUntilReplaced(t *testing.T) {
	for _, age := range []time.Duration{10 * time.Minute, 2 * time.Hour} {
		t.Run(fmt.Sprint(age), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				listSource, mechanism := &fakeSource{}, &fakeSource{}
				b, cc := newSourceBuilder(listSource), &channel{}
				r := build(t, b, cc)
				listSource.Mechanisms([]discovery.Mechanism{{Name: "a", Source: mechanism}})
				mechanism.sendAddresses("10.0.0.1:1")
				<-time.After(age)
				listSource.Mechanisms([]discovery.Mechanism{{Name: "a", Source: failingSource{}}})
				<-time.After(40 * time.Minute)
				r.Close()
				cc.take()
				for _, want := range []string{`state 10.0.0.1:1["a/child0" "/"]`, "error x: a: bad cluster"} {
					r := build(t, b, cc)
					listSource.Mechanisms([]discovery.Mechanism{{Name: "a", Source: failingSource{}}})
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

// If a discovery mechanism is removed from the list and added again within an hour, it must use its
// last answer, however old the answer is.
func TestRemovedMechanismConfirmsItsAnswer(t *testing.T) {
	for _, age := range []time.Duration{10 * time.Minute, 2 * time.Hour} {
		t.Run(fmt.Sprint(age), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newListLab(t)
				a, b := &fakeSource{}, &fakeSource{}
				l.sendList("a", a, "b", b)
				b.sendAddresses("10.0.0.2:1")
				a.sendAddresses("10.0.0.1:1")
				l.wantUpdates(`state 10.0.0.1:1["a/child0" "/"] 10.0.0.2:1["b/child0" "/"]`)
				<-time.After(age)
				l.sendList("b", b)
				l.wantUpdates(`state 10.0.0.2:1["b/child0" "/"]`)
				<-time.After(time.Minute)
				l.sendList("a", failingSource{}, "b", b)
				l.wantUpdates(`state 10.0.0.1:1["a/child0" "/"] 10.0.0.2:1["b/child0" "/"]`)
			})
		})
	}
}

// The store was full, so it dropped the stored answer of a channel. When there is space again, a
// confirmation must store the answer again.
func TestDroppedAnswerIsStoredAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeSource{}
		b, cc := newSourceBuilder(s), &channel{}
		r := build(t, b, cc)
		s.sendAddresses("10.0.0.1:1")
		var others []resolver.Resolver
		for range 1000 {
			other := &fakeSource{}
			others = append(others, build(t, newSourceBuilder(other), &channel{}))
			other.sendAddresses("10.0.0.2:1")
		}
		for _, o := range others {
			o.Close()
		}
		for range 20 {
			<-time.After(10 * time.Minute)
			s.sendAddresses("10.0.0.1:1")
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

type nestingSource struct{ inner discovery.Source }

func (nestingSource) Check(bool) error { return nil }

func (n nestingSource) Start(r *discovery.Receiver) (discovery.Started, error) {
	r.Mechanisms([]discovery.Mechanism{{Name: "inner", Source: n.inner}})
	return discovery.Started{}, nil
}

// A list that a mechanism of another list sends must be refused. Calls must fail with an error, and
// the sources of the inner list must not be started.
func TestNestedListIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newListLab(t)
		inner := &fakeSource{onStart: func(*fakeSource) { t.Error("the inner source is started") }}
		l.sendList("a", nestingSource{inner})
		l.wantUpdates("error x: a: it sends a list although it is in a list: want its entries in the list that it is in")
	})
}
