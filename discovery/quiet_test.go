package discovery_test

import (
	"errors"
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
