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

type registry struct {
	scripted
	starts, asked int
	told          int
}

func (s *registry) Start(r *discovery.Receiver) (discovery.Started, error) {
	s.starts++
	started, err := s.scripted.Start(r)
	started.ResolveNow = func() { s.asked++ }
	started.EndpointsFailed = func() { s.told++ }
	return started, err
}

type sharing struct {
	*registry
	t    *testing.T
	open func() (*channel, resolver.Resolver)
}

func share(t *testing.T, linger time.Duration, f func(*sharing)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &registry{}
		b := one(discovery.Shared(t.Name(), linger, s))
		f(&sharing{s, t, func() (*channel, resolver.Resolver) {
			cc := &channel{}
			return cc, build(t, b, cc)
		}})
		time.Sleep(linger)
		synctest.Wait()
		if s.starts != s.closed {
			t.Errorf("it was started %d times, and closed %d times", s.starts, s.closed)
		}
	})
}

func (s *sharing) sees(cc *channel, want string) {
	s.t.Helper()
	synctest.Wait()
	if got := cc.take(); got != want {
		s.t.Errorf("channel saw %q, want %q", got, want)
	}
}

const (
	state1 = `state 10.0.0.1:1["child0" "/"]`
	state2 = `state 10.0.0.2:1["child0" "/"]`
)

// Channels with the same key must share one source. A channel that opens later must have the
// current answer before Build returns.
func TestASharedSourceIsStartedOnce(t *testing.T) {
	share(t, 0, func(s *sharing) {
		a, ra := s.open()
		s.say("10.0.0.1:1")
		s.sees(a, state1)
		b, rb := s.open()
		if got := b.take(); got != state1 {
			t.Errorf("the late channel saw %q, want %q", got, state1)
		}
		s.say("10.0.0.2:1")
		s.sees(a, state2)
		s.sees(b, state2)
		ra.Close()
		s.say("10.0.0.1:1")
		s.sees(a, "")
		s.sees(b, state1)
		if s.closed > 0 {
			t.Error("it is closed while a channel uses it")
		}
		rb.Close()
		if s.starts != 1 {
			t.Errorf("it was started %d times", s.starts)
		}
	})
}

func TestASharedSourceLingers(t *testing.T) {
	share(t, 10*time.Second, func(s *sharing) {
		for range 3 {
			_, r := s.open()
			s.say("10.0.0.1:1")
			r.Close()
			time.Sleep(10*time.Second - time.Nanosecond)
		}
		if s.starts != 1 || s.closed != 0 {
			t.Errorf("after less than 10 s it was started %d times, and closed %d times", s.starts, s.closed)
		}
		s.say("10.0.0.2:1")
		cc, r := s.open()
		s.sees(cc, state2)
		r.Close()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if s.closed != 1 {
			t.Errorf("after 10 s it was closed %d times", s.closed)
		}
		_, r = s.open()
		r.Close()
		if s.starts != 2 {
			t.Errorf("then it was started %d times, want a second time", s.starts)
		}
	})
}

// A channel that opens later must get the current failure. A confirmation or an answer must end a
// failure.
func TestALateChannelHasTheFailure(t *testing.T) {
	share(t, 0, func(s *sharing) {
		a, ra := s.open()
		s.Fail(errors.New("down"))
		s.sees(a, "error x: down")
		b, rb := s.open()
		s.sees(b, "error x: down")
		answer := flat.Answer(flat.Endpoint{Address: "10.0.0.1:1", Health: discovery.Unhealthy})
		_ = s.Update(answer)
		synctest.Wait()
		fails := func(want bool) {
			t.Helper()
			c, r := s.open()
			if got := strings.Contains(c.failure(), "away"); got != want {
				t.Errorf("a late channel sees %q, want the failure: %v", c.failure(), want)
			}
			r.Close()
		}
		fails(false)
		s.Fail(errors.New("away"))
		fails(true)
		s.Confirm()
		fails(false)
		s.Fail(errors.New("away"))
		_ = s.Update(answer)
		fails(false)
		ra.Close()
		rb.Close()
	})
}

// A slow channel must not delay the others. When it is ready, it must get only the latest answer.
func TestASlowChannelHoldsUpNoOther(t *testing.T) {
	share(t, 0, func(s *sharing) {
		slow, rs := s.open()
		slow.onUpdate = func(resolver.State) { time.Sleep(time.Minute) }
		quick, rq := s.open()
		for i := range 5 {
			began := time.Now()
			s.say(fmt.Sprintf("10.0.0.%d:1", i))
			s.sees(quick, fmt.Sprintf(`state 10.0.0.%d:1["child0" "/"]`, i))
			if time.Since(began) > 0 {
				t.Errorf("answer %d took %v", i, time.Since(began))
			}
		}
		time.Sleep(2 * time.Minute)
		s.sees(slow, `state 10.0.0.0:1["child0" "/"]`+"\n"+`state 10.0.0.4:1["child0" "/"]`)
		rs.Close()
		rq.Close()
	})
}

// A shared source could not be started. The next channel must try again. A source that was not
// started must not be closed.
func TestASharedSourceThatDoesNotStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &registry{}
		b := one(discovery.Shared(t.Name(), time.Minute, s))
		s.refuses = "no registry"
		for range 2 {
			if _, err := b.Build(target("x:///y"), &channel{}, resolver.BuildOptions{}); err == nil || !strings.Contains(err.Error(), s.refuses) {
				t.Errorf("error %v, want %s", err, s.refuses)
			}
		}
		time.Sleep(time.Hour)
		if s.starts != 2 || s.closed != 0 {
			t.Errorf("started %d times, closed %d times", s.starts, s.closed)
		}
		if err := one(discovery.Shared([]int{1}, 0, s)).Check(target("x:///y"), false); err == nil || !strings.Contains(err.Error(), "has type []int") {
			t.Errorf("Check = %v, want an error about the key", err)
		}
	})
}

// A channel rejects an answer. The source's ResolveNow must be called, but not a second time for
// this channel before the channel has accepted an answer.
func TestASharedSourceIsAskedWhereAnAnswerIsNotTaken(t *testing.T) {
	share(t, 0, func(s *sharing) {
		a, ra := s.open()
		_, rb := s.open()
		bad := func(port int) discovery.Answer {
			return flat.Answer(flat.Endpoint{Address: fmt.Sprintf("10.0.0.1:%d", 70000+port)})
		}
		for i := range 3 {
			if err := s.Update(bad(i)); err != nil {
				t.Errorf("the source got %v, want nothing", err)
			}
			synctest.Wait()
		}
		if s.asked != 2 {
			t.Errorf("it was asked %d times, want once for each channel", s.asked)
		}
		a.take()
		s.say("10.0.0.1:1")
		s.sees(a, state1)
		ra.ResolveNow(resolver.ResolveNowOptions{})
		synctest.Wait()
		if s.asked != 3 || s.told != 1 {
			t.Errorf("it was asked %d times, and told %d times, want one more and one", s.asked, s.told)
		}
		ra.Close()
		rb.Close()
	})
}
