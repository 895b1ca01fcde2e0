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

var emptyAnswers = map[string]struct {
	nonEmpty   discovery.Answer
	empty      []discovery.Answer
	state      string
	emptyState string // the update of the channel if Empty is set
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

// An answer without endpoints must count as a failure if Empty is not set. The last answer must
// stay in use, even after the channel was idle. Without a last answer, the errors of calls must
// contain the reason.
func TestUnintendedEmptyAnswer(t *testing.T) {
	for name, test := range emptyAnswers {
		for i, empty := range test.empty {
			t.Run(fmt.Sprint(name, " ", i), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, cc := &fakeSource{}, &channel{}
					b := newSourceBuilder(s)
					r := build(t, b, cc)
					if err := s.Update(empty); err == nil {
						t.Error("an empty answer was accepted, want an error")
					}
					if got := cc.take(); !strings.HasPrefix(got, "error x: its ") {
						t.Errorf("the channel saw %q, want the reason for having no endpoints", got)
					}
					_ = s.Update(test.nonEmpty)
					_ = s.Update(empty)
					r.Close()
					time.Sleep(time.Minute)
					r = build(t, b, cc)
					_ = s.Update(empty)
					r.Close()
					if got, want := cc.take(), test.state+"\n"+test.state; got != want {
						t.Errorf("the channel saw\n%s\nwant\n%s", got, want)
					}
				})
			})
		}
	}
}

// If Empty is set, an answer without endpoints must replace the last answer, even after the channel
// was idle.
func TestIntendedEmptyAnswer(t *testing.T) {
	for name, test := range emptyAnswers {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				empty := test.empty[0]
				empty.Empty = true
				nonEmpty := test.nonEmpty
				nonEmpty.Empty = true
				s, cc := &fakeSource{}, &channel{}
				b := newSourceBuilder(s)
				r := build(t, b, cc)
				for range 2 {
					_ = s.Update(nonEmpty)
					_ = s.Update(empty)
					_ = s.Update(empty)
				}
				r.Close()
				time.Sleep(time.Minute)
				r = build(t, b, cc)
				s.Fail(errors.New("down"))
				r.Close()
				want := strings.Join([]string{test.state, test.emptyState, test.state, test.emptyState, test.emptyState}, "\n")
				got := strings.ReplaceAll(cc.take(), "child1", "child0") // ignore that a child gets a new name when it is added again
				if got != want {
					t.Errorf("the channel saw\n%s\nwant\n%s", got, want)
				}
			})
		})
	}
}
