package discovery_test

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

// shapes are answers with endpoints, and the answers of the same shape without any.
var shapes = map[string]struct {
	some   discovery.Answer
	empty  []discovery.Answer
	state  string
	nobody string // in the state of one that is meant
}{
	"cluster": {
		flat.Answer(flat.Endpoint{Address: "10.0.0.1:1"}),
		[]discovery.Answer{
			{},
			{Priorities: []discovery.Priority{{}, {Localities: []discovery.Locality{{}, {Zone: "a"}}}}},
		},
		`state 10.0.0.1:1["child0" "/"]`, "state ",
	},
	"plain": {
		discovery.Answer{Resolved: []resolver.Endpoint{{Addresses: []resolver.Address{{Addr: "10.0.0.1:1"}}}}},
		[]discovery.Answer{{Resolved: []resolver.Endpoint{}}, {Resolved: []resolver.Endpoint{{}}}, {}},
		`state 10.0.0.1:1["endpoints" "/"]`, "state ",
	},
}

// An answer that holds no endpoint, and does not say that this is meant, is a failure: what was
// known stays in use, also after idleness, and calls see why where nothing was.
func TestAnEmptyAnswerThatNobodyMeansIsAFailure(t *testing.T) {
	for about, shape := range shapes {
		for i, empty := range shape.empty {
			t.Run(fmt.Sprint(about, " ", i), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, cc := &scripted{}, &channel{}
					b := one(s)
					r := build(t, b, cc)
					if err := s.Update(empty); err == nil {
						t.Error("an empty answer is taken, want an error")
					}
					if got := cc.take(); !strings.HasPrefix(got, "error x: its ") {
						t.Errorf("the channel saw %q, want why there are no endpoints", got)
					}
					_ = s.Update(shape.some)
					_ = s.Update(empty)
					r.Close()
					time.Sleep(time.Minute)
					r = build(t, b, cc)
					_ = s.Update(empty)
					r.Close()
					if got, want := cc.take(), shape.state+"\n"+shape.state; got != want {
						t.Errorf("the channel saw\n%s\nwant\n%s", got, want)
					}
				})
			})
		}
	}
}

// One that says that it is meant is an answer like any other, also after idleness.
func TestAnEmptyAnswerThatIsMeant(t *testing.T) {
	for about, shape := range shapes {
		t.Run(about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				empty := shape.empty[0]
				empty.Empty = true
				some := shape.some
				some.Empty = true // which is wrong, and has no effect
				s, cc := &scripted{}, &channel{}
				b := one(s)
				r := build(t, b, cc)
				for range 2 {
					_ = s.Update(some)
					_ = s.Update(empty)
					_ = s.Update(empty)
				}
				r.Close()
				time.Sleep(time.Minute)
				r = build(t, b, cc)
				s.Fail(errors.New("down"))
				r.Close()
				want := strings.Join([]string{shape.state, shape.nobody, shape.state, shape.nobody, shape.nobody}, "\n")
				got := strings.ReplaceAll(cc.take(), "child1", "child0") // a name that is gone does not come back
				if got != want {
					t.Errorf("the channel saw\n%s\nwant\n%s", got, want)
				}
			})
		})
	}
}

// Two sources of one's own: while the first says [] by mistake it keeps its endpoints; once it
// means it, calls go to the second.
func TestAnEmptyFirstPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second, cc := &scripted{}, &scripted{}, &channel{}
		r := build(t, of([]discovery.Mechanism{{Name: "a", Source: first}, {Name: "b", Source: second}}), cc)
		defer r.Close()
		_ = first.say("10.0.0.1:1")
		_ = second.say("10.0.0.2:1")
		_ = first.say()
		second.Fail(errors.New("down"))
		_ = first.Update(flat.Empty())
		lines := strings.Split(cc.take(), "\n")
		if last := lines[len(lines)-1]; strings.Contains(last, "10.0.0.1:1") || !strings.Contains(last, "10.0.0.2:1") || len(lines) != 3 {
			t.Errorf("the channel saw\n%s\nwant both endpoints until the first part says that it has none", strings.Join(lines, "\n"))
		}
	})
}
