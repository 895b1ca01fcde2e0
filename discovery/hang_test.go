package discovery_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy/discovery"
)

// A channel leaves idle mode and its source hangs. The channel must get the stored answer after two
// seconds.
func TestASourceThatHangsWhereItsAnswerIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, cc := &scripted{}, &channel{}
		b := one(s)
		r := build(t, b, cc)
		<-time.After(3 * time.Second)
		if got := cc.take(); got != "" {
			t.Errorf("before the first answer the channel saw %q", got)
		}
		s.say("10.0.0.1:1")
		r.Close()
		known := cc.take()
		<-time.After(10 * time.Minute)

		const line = "x: nothing was heard for 2s; the endpoints that were confirmed 10m2s ago are used"
		before := logged.Count(line)
		r = build(t, b, cc)
		<-time.After(2*time.Second - 1)
		synctest.Wait()
		if got := cc.take(); got != "" {
			t.Errorf("at once the channel saw %q, want it to wait for the source", got)
		}
		<-time.After(1)
		synctest.Wait()
		if got := cc.take(); got != known {
			t.Errorf("after two seconds the channel saw %q, want %q", got, known)
		}
		<-time.After(time.Minute)
		s.Fail(errors.New("cannot be reached"))
		if got := cc.take(); got != "" || logged.Count(line) != before+1 {
			t.Errorf("the channel saw %q, and the log says %d times what is used; want nothing, and once", got, logged.Count(line)-before)
		}
		s.say("10.0.0.2:1")
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

func TestASourceThatAnswersInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, cc := &scripted{}, &channel{}
		b := one(s)
		r := build(t, b, cc)
		s.say("10.0.0.1:1")
		r.Close()
		r = build(t, b, cc)
		defer r.Close()
		<-time.After(time.Second)
		s.say("10.0.0.2:1")
		<-time.After(time.Minute)
		want := `state 10.0.0.1:1["child0" "/"]` + "\n" + `state 10.0.0.2:1["child0" "/"]`
		if got := cc.take(); got != want {
			t.Errorf("channel saw\n%s\nwant\n%s", got, want)
		}
	})
}

// Each of two sources has two seconds to answer. A source that hangs must not delay the other one
// any longer.
func TestOneOfTwoSourcesHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second, cc := &scripted{}, &scripted{}, &channel{}
		b := of([]discovery.Mechanism{{Name: "a", Source: first}, {Name: "b", Source: second}})
		r := build(t, b, cc)
		first.say("10.0.0.1:1")
		second.say("10.0.0.2:1")
		r.Close()
		cc.take()
		r = build(t, b, cc)
		defer r.Close()
		second.say("10.0.0.3:1")
		<-time.After(2 * time.Second)
		synctest.Wait()
		if got, want := cc.take(), `state 10.0.0.1:1["a/child0" "/"] 10.0.0.3:1["b/child0" "/"]`; got != want {
			t.Errorf("channel saw %q, want %q", got, want)
		}
	})
}

// A source that sends a list of discovery mechanisms hangs. After two seconds, the stored list must
// be used. If a mechanism in this list answers quickly, its new answer must be used.
func TestAListOfPartsHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs, looksUp, cc := &scripted{}, &scripted{}, &channel{}
		whole := &scripted{}
		b := one(whole)
		r := build(t, b, cc)
		whole.Parts([]discovery.Mechanism{{Name: "a", Source: hangs}, {Name: "b", Source: looksUp}})
		hangs.say("10.0.0.1:1")
		looksUp.say("10.0.0.2:1")
		r.Close()
		cc.take()
		looksUp.inStart = func(s *scripted) {
			time.AfterFunc(100*time.Millisecond, func() { s.say("10.0.0.3:1") })
		}
		r = build(t, b, cc)
		defer r.Close()
		<-time.After(2500 * time.Millisecond)
		synctest.Wait()
		if got, want := cc.take(), `state 10.0.0.1:1["a/child0" "/"] 10.0.0.3:1["b/child0" "/"]`; got != want {
			t.Errorf("channel saw %q, want %q", got, want)
		}
	})
}

// An answer arrives at the very moment at which the stored one would be used. The new one must be
// used.
func TestAnAnswerAndTheEndOfPatience(t *testing.T) {
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			s, cc := &scripted{}, &channel{}
			b := one(s)
			r := build(t, b, cc)
			s.say("10.0.0.1:1")
			r.Close()
			cc.take()
			s.inStart = func(s *scripted) {
				time.AfterFunc(2*time.Second, func() { s.say("10.0.0.2:1") })
				time.AfterFunc(2*time.Second, func() { s.Fail(errors.New("down")) })
			}
			r = build(t, b, cc)
			defer r.Close()
			<-time.After(3 * time.Second)
			synctest.Wait()
			if got := lastOf(cc); got != "10.0.0.2:1" {
				t.Fatalf("the channel has %s at the end, want the new answer", got)
			}
		})
	}
}

func lastOf(cc *channel) string {
	cc.mu.Lock()
	defer cc.mu.Unlock()
	if len(cc.last.Endpoints) == 0 {
		return "nothing"
	}
	return cc.last.Endpoints[0].Addresses[0].Addr
}
