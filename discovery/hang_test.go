package discovery_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// If the source hangs when a channel leaves idle mode, the channel must get the stored answer after
// two seconds.
func TestStoredAnswerIfSourceHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, cc := &fakeSource{}, &channel{}
		b := newSourceBuilder(s)
		r := build(t, b, cc)
		<-time.After(3 * time.Second)
		if got := cc.take(); got != "" {
			t.Errorf("before the first answer the channel saw %q", got)
		}
		s.sendAddresses("10.0.0.1:1")
		r.Close()
		stored := cc.take()
		<-time.After(10 * time.Minute)

		const line = "x: no answer within 2s; the endpoints that were confirmed 10m2s ago are used"
		before := logged.Count(line)
		r = build(t, b, cc)
		<-time.After(2*time.Second - 1)
		synctest.Wait()
		if got := cc.take(); got != "" {
			t.Errorf("at once the channel saw %q, want it to wait for the source", got)
		}
		<-time.After(1)
		synctest.Wait()
		if got := cc.take(); got != stored {
			t.Errorf("after two seconds the channel saw %q, want %q", got, stored)
		}
		<-time.After(time.Minute)
		s.Fail(errors.New("cannot be reached"))
		if got := cc.take(); got != "" || logged.Count(line) != before+1 {
			t.Errorf("the channel saw %q, and the log says %d times what is used; want nothing, and once", got, logged.Count(line)-before)
		}
		s.sendAddresses("10.0.0.2:1")
		if got, want := cc.take(), `state 10.0.0.2:1["child0" "/"]`; got != want {
			t.Errorf("the channel saw %q, want the new answer: %q", got, want)
		}
		r.Close()
		<-time.After(3 * time.Second)
		if got := cc.take(); got != "" {
			t.Errorf("after Close the channel saw %q", got)
		}
	})
}

// An answer arrives at the moment when the channel would use the stored one. The channel must use
// the new answer.
func TestAnswerAtHangTimeout(t *testing.T) {
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			s, cc := &fakeSource{}, &channel{}
			b := newSourceBuilder(s)
			r := build(t, b, cc)
			s.sendAddresses("10.0.0.1:1")
			r.Close()
			cc.take()
			s.onStart = func(s *fakeSource) {
				time.AfterFunc(2*time.Second, func() { s.sendAddresses("10.0.0.2:1") })
				time.AfterFunc(2*time.Second, func() { s.Fail(errors.New("down")) })
			}
			r = build(t, b, cc)
			defer r.Close()
			<-time.After(3 * time.Second)
			synctest.Wait()
			if got := lastAddress(cc); got != "10.0.0.2:1" {
				t.Fatalf("the channel has %s at the end, want the new answer", got)
			}
		})
	}
}

func lastAddress(cc *channel) string {
	cc.mu.Lock()
	defer cc.mu.Unlock()
	if len(cc.lastState.Endpoints) == 0 {
		return "nothing"
	}
	return cc.lastState.Endpoints[0].Addresses[0].Addr
}
