package discovery_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy/discovery"
)

// A source that has nothing new to say for hours has confirmed its answer all the time,
// whatever other sources of the process say meanwhile.
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

// failing is a source that has no answer.
type failing struct{}

func (failing) Start(r discovery.Receiver) (discovery.Watch, error) {
	r.Fail(errors.New("bad cluster"))
	return closer{}, nil
}

type closer struct{}

func (closer) Close() {}

// The answer of a part is confirmed until its source is replaced, however long ago it came.
func TestAPartConfirmsItsAnswerUntilItIsReplaced(t *testing.T) {
	for _, quiet := range []time.Duration{10 * time.Minute, 2 * time.Hour} {
		t.Run(fmt.Sprint(quiet), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				whole, part := &scripted{}, &scripted{}
				b, cc := one(whole), &channel{}
				r := build(t, b, cc)
				whole.Parts([]discovery.Part{{Name: "a", Source: part}})
				part.say("10.0.0.1:1")
				<-time.After(quiet)
				whole.Parts([]discovery.Part{{Name: "a", Source: failing{}}})
				<-time.After(40 * time.Minute)
				r.Close()
				cc.take()
				for _, want := range []string{`state 10.0.0.1:1["a/child0" "/"]`, "error x: a: bad cluster"} {
					r := build(t, b, cc)
					whole.Parts([]discovery.Part{{Name: "a", Source: failing{}}})
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
