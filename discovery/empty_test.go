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

var shapes = map[string]struct {
	some   discovery.Answer
	empty  []discovery.Answer
	state  string
	nobody string // expected state after an empty answer with Empty set
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

// A source sends an answer without endpoints, and Empty is not set. This must count as a failure.
// The last answer must stay in use, even after the channel was idle. If there is none, the errors
// of calls must say why there are no endpoints.
func TestAnEmptyAnswerThatNobodyMeansIsAFailure(t *testing.T) {
	for about, shape := range shapes {
		for i, empty := range shape.empty {
			t.Run(fmt.Sprint(about, " ", i), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, cc := &scripted{}, &channel{}
					b := one(s)
					r := build(t, b, cc)
					if err := s.Update(empty); err == nil {
						t.Error("an empty answer was accepted, want an error")
					}
					if got := cc.take(); !strings.HasPrefix(got, "error x: its ") {
						t.Errorf("the channel saw %q, want the reason for having no endpoints", got)
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

// A source sends an answer without endpoints, and Empty is set. It must replace the last answer,
// even after the channel was idle.
func TestAnEmptyAnswerThatIsMeant(t *testing.T) {
	for about, shape := range shapes {
		t.Run(about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				empty := shape.empty[0]
				empty.Empty = true
				some := shape.some
				some.Empty = true
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
				got := strings.ReplaceAll(cc.take(), "child1", "child0") // a child that is added again does not get its old name
				if got != want {
					t.Errorf("the channel saw\n%s\nwant\n%s", got, want)
				}
			})
		})
	}
}

// The first of two sources sends an answer without endpoints. Its last endpoints must stay in use.
// When it sends the same answer with Empty set, calls must go to the second source.
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
			t.Errorf("the channel saw\n%s\nwant both endpoints until the first mechanism sets Empty", strings.Join(lines, "\n"))
		}
	})
}
