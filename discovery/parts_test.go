package discovery_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

// lab is a channel whose source sends lists of discovery mechanisms (Receiver.Parts).
type lab struct {
	t     *testing.T
	cc    *channel
	whole *scripted
}

func newLab(t *testing.T, opts ...given.Option) *lab {
	l := &lab{t, &channel{}, &scripted{}}
	r := build(t, of([]discovery.Mechanism{{Source: l.whole, Authority: "whole"}}, opts...), l.cc)
	t.Cleanup(r.Close)
	return l
}

func (l *lab) parts(namesAndSources ...any) {
	var list []discovery.Mechanism
	for i := 0; i < len(namesAndSources); i += 2 {
		list = append(list, discovery.Mechanism{Name: namesAndSources[i].(string), Source: namesAndSources[i+1].(discovery.Source), Authority: "not counted"})
	}
	l.whole.Parts(list)
}

func (l *lab) saw(want string) {
	l.t.Helper()
	if got := l.cc.take(); got != want {
		l.t.Errorf("channel saw\n%s\nwant\n%s", got, want)
	}
}

// The discovery mechanisms of a list are in priority order. The channel must not get an update
// before the first one has answered.
func TestPartsInPlaceOfAnAnswer(t *testing.T) {
	l := newLab(t)
	a, b := &scripted{}, &scripted{}
	l.parts("a", a, "b", b)
	l.saw("")
	b.say("10.0.0.2:1")
	l.saw("")
	a.say("10.0.0.1:1")
	l.saw(`state 10.0.0.1:1["a/child0" "/"] 10.0.0.2:1["b/child0" "/"]`)
	l.parts("a", a, "b", b)
	if l.saw(""); a.closed+b.closed > 0 {
		t.Error("a source was closed")
	}
	c := &scripted{}
	l.parts("c", c, "b", b, "a", a)
	l.saw("")
	c.Fail(errors.New("no c"))
	l.saw(`state 10.0.0.2:1["b/child0" "/"] 10.0.0.1:1["a/child0" "/"]`)
	if !strings.Contains(l.cc.config(), `"priorities":["c","b/child0","a/child0"]`) {
		t.Errorf("config %s does not have all priorities in order", l.cc.config())
	}
	// The source of an entry that is no longer in the list must be closed. Its later reports must have
	// no effect.
	l.parts("c", c, "a", a)
	l.saw(`state 10.0.0.1:1["a/child0" "/"]`)
	b.say("10.0.0.9:1")
	if l.saw(""); b.closed != 1 || a.closed != 0 {
		t.Errorf("b was closed %d times, a %d", b.closed, a.closed)
	}
}

// The old list must stay in use until an entry of the new list has answered.
func TestPartsMakeBeforeBreak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		a, b, c := &scripted{}, &scripted{}, &scripted{}
		l.parts("a", a)
		a.say("10.0.0.1:1")
		l.saw(`state 10.0.0.1:1["a/child0" "/"]`)
		l.parts("b", b, "c", c)
		time.Sleep(time.Hour)
		l.saw("")
		b.Fail(errors.New("no b"))
		l.saw("")
		a.say("10.0.0.2:1")
		l.saw(`state 10.0.0.2:1["a/child0" "/"]`)
		c.say("10.0.0.3:1")
		l.saw(`state 10.0.0.3:1["c/child0" "/"]`)
		if a.closed != 1 {
			t.Errorf("a was closed %d times", a.closed)
		}
		// A list must wait for a slow entry until the failover timeout has passed.
		d, e := &scripted{}, &scripted{}
		l.parts("d", d, "e", e)
		e.say("10.0.0.5:1")
		time.Sleep(10*time.Second - time.Nanosecond)
		l.saw("")
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		l.saw(`state 10.0.0.5:1["e/child0" "/"]`)
		d.say("10.0.0.4:1")
		l.saw(`state 10.0.0.4:1["d/child0" "/"] 10.0.0.5:1["e/child0" "/"]`)
	})
}

func TestPartsAndAnswersInTurn(t *testing.T) {
	l := newLab(t)
	a := &scripted{}
	l.whole.say("10.0.0.1:1")
	l.saw(`state 10.0.0.1:1["child0" "/"]`)
	l.parts("a", a)
	l.saw("")
	l.whole.say("10.0.0.1:1")
	a.say("10.0.0.7:1")
	l.saw(`state 10.0.0.1:1["child0" "/"]`)
	l.parts("a", a)
	a.say("10.0.0.2:1")
	l.saw(`state 10.0.0.2:1["a/child0" "/"]`)
	l.whole.say("10.0.0.3:1")
	l.saw(`state 10.0.0.3:1["child0" "/"]`)
	if a.closed != 2 {
		t.Errorf("a was closed %d times, want twice", a.closed)
	}
}

// In a new list, a discovery mechanism has another source. Its old answer must stay in use until
// the new source has answered, even if the new source fails first.
func TestPartWithAnotherSource(t *testing.T) {
	l := newLab(t)
	one, two, three := &scripted{}, &scripted{}, &scripted{}
	l.parts("a", one)
	one.say("10.0.0.1:1")
	l.saw(`state 10.0.0.1:1["a/child0" "/"]`)
	l.parts("a", two)
	l.saw("")
	one.say("10.0.0.9:1")
	if l.saw(`state 10.0.0.9:1["a/child0" "/"]`); one.closed != 0 {
		t.Error("the previous source was closed too soon")
	}
	two.say("10.0.0.2:1")
	if l.saw(`state 10.0.0.2:1["a/child0" "/"]`); one.closed != 1 {
		t.Errorf("the previous source was closed %d times", one.closed)
	}
	l.parts("a", three)
	three.Fail(errors.New("down"))
	if l.saw(`state 10.0.0.2:1["a/child0" "/"]`); two.closed != 1 {
		t.Errorf("the second source was closed %d times", two.closed)
	}
	three.say("10.0.0.3:1")
	l.saw(`state 10.0.0.3:1["a/child0" "/"]`)
}

// A new list changes the sources of two discovery mechanisms. The channel must get both changes in
// one update.
func TestPartsChangeTogether(t *testing.T) {
	l := newLab(t)
	now := func(address string) *scripted {
		return &scripted{inStart: func(s *scripted) { s.say(address) }}
	}
	late := &scripted{}
	l.parts("a", now("10.1.0.1:1"), "b", now("10.1.0.2:1"))
	l.saw(`state 10.1.0.1:1["a/child0" "/"] 10.1.0.2:1["b/child0" "/"]`)
	l.parts("a", now("10.2.0.1:1"), "b", now("10.2.0.2:1"))
	l.saw(`state 10.2.0.1:1["a/child0" "/"] 10.2.0.2:1["b/child0" "/"]`)
	l.parts("a", now("10.3.0.1:1"), "b", late)
	l.saw("")
	late.say("10.3.0.2:1")
	l.saw(`state 10.3.0.1:1["a/child0" "/"] 10.3.0.2:1["b/child0" "/"]`)
}

// The error of a discovery mechanism must contain its name. If no mechanism has an address, calls
// must fail with all these errors.
func TestErrorsOfParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		a, b := &scripted{}, &scripted{refuses: "cannot start"}
		l.parts("a", a, "b", b)
		a.Fail(errors.New("no such cluster"))
		l.saw("error x: no part has an address: a: no such cluster; b: cannot start")
		c := &scripted{}
		l.parts("c", c)
		c.Fail(errors.New("nor that"))
		l.saw("error x: c: nor that")
		before := logged.Count("x: part 1 has no name")
		l.whole.Parts(nil)
		l.whole.Parts([]discovery.Mechanism{{Source: c}})
		l.saw("")
		if got := logged.Count("x: part 1 has no name") - before; got != 1 {
			t.Errorf("a list with a mistake is logged %d times, want once", got)
		}
	})
}

// Requests for re-resolution must reach only the sources that have a ResolveNow.
func TestPartsResolveOnTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		asked := ""
		a, b := &scripted{}, &resolving{onAsk: func() { asked += "b" }}
		l.parts("a", a, "b", b)
		a.say("10.0.0.1:1")
		_ = b.Update(discovery.Answer{Resolved: []resolver.Endpoint{{Addresses: []resolver.Address{{Addr: "10.0.0.2:1"}}}}})
		for child, ignores := range map[string]string{"a/child0": "true", "b": "false"} {
			_, config, _ := strings.Cut(l.cc.config(), `"`+child+`":`)
			if _, after, _ := strings.Cut(config, `"ignoreReresolutionRequests":`); !strings.HasPrefix(after, ignores) {
				t.Errorf("%s ignores re-resolution: not %s, in %s", child, ignores, l.cc.config())
			}
		}
	})
}

// A source sends a list from inside Start, and the sources in the list answer from inside theirs.
// When the channel closes, all of them must be closed.
func TestPartsInStart(t *testing.T) {
	a := &scripted{inStart: func(s *scripted) { s.say("10.0.0.1:1") }}
	whole := &scripted{inStart: func(s *scripted) { s.Parts([]discovery.Mechanism{{Name: "a", Source: a}}) }}
	cc := &channel{}
	r := build(t, one(whole), cc)
	if got, want := cc.take(), `state 10.0.0.1:1["a/child0" "/"]`; got != want {
		t.Errorf("channel saw %q, want %q", got, want)
	}
	r.Close()
	if a.closed != 1 || whole.closed != 1 {
		t.Errorf("closed %d and %d times, want once each", a.closed, whole.closed)
	}
	late := &scripted{}
	whole.Parts([]discovery.Mechanism{{Name: "late", Source: late}})
	if late.Receiver != nil {
		t.Error("a source is started after Close")
	}
}

// A discovery mechanism sends a list. The entries must have its authority, and their names must
// begin with its name.
func TestPartsWithinAPart(t *testing.T) {
	cc, whole, other, a := &channel{}, &scripted{}, &scripted{}, &scripted{}
	r := build(t, of([]discovery.Mechanism{
		{Name: "whole", Source: whole, Authority: "whole.example.com"},
		{Name: "other", Source: other, Authority: "other.example.com"},
	}), cc)
	defer r.Close()
	whole.Parts([]discovery.Mechanism{{Name: "a", Source: a, Authority: "forged"}})
	a.say("10.0.0.1:1")
	if got, want := cc.take(), `state 10.0.0.1:1/whole.example.com["whole/a/child0" "/"]`; got != want {
		t.Errorf("channel saw %q, want %q", got, want)
	}
	other.say("10.0.0.2:1")
	whole.Parts([]discovery.Mechanism{{Name: "a", Source: a}, {Name: "b", Source: &scripted{inStart: func(s *scripted) { s.Fail(errors.New("x")) }}}})
	if got, want := cc.take(), `state 10.0.0.1:1/whole.example.com["whole/a/child0" "/"] 10.0.0.2:1/other.example.com["other/child0" "/"]`; !strings.HasSuffix(got, want) {
		t.Errorf("channel saw %q, want %q", got, want)
	}
	if !strings.Contains(cc.config(), `"priorities":["whole/a/child0","whole/b","other/child0"]`) {
		t.Errorf("config %s does not have all priorities in order", cc.config())
	}
}

func TestPartsAndIdleness(t *testing.T) {
	whole, a := &scripted{}, &scripted{}
	b := one(whole)
	cc := &channel{}
	r := build(t, b, cc)
	whole.Parts([]discovery.Mechanism{{Name: "a", Source: a}})
	a.say("10.0.0.1:1")
	r.Close()
	cc.take()
	r = build(t, b, cc)
	defer r.Close()
	whole.Fail(errors.New("the server is down"))
	if cc.take() != "" {
		t.Error("the mechanism is used before its source has failed")
	}
	a.Fail(errors.New("down, too"))
	if got, want := cc.take(), `state 10.0.0.1:1["a/child0" "/"]`; got != want {
		t.Errorf("channel saw %q, want %q", got, want)
	}
}
