package discovery_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

// listLab is a channel whose source sends lists of discovery mechanisms (Receiver.Mechanisms).
type listLab struct {
	t          *testing.T
	cc         *channel
	listSource *fakeSource
}

func newListLab(t *testing.T, opts ...given.Option) *listLab {
	l := &listLab{t, &channel{}, &fakeSource{}}
	r := build(t, newBuilder([]discovery.Mechanism{{Source: l.listSource, Authority: "whole"}}, opts...), l.cc)
	t.Cleanup(r.Close)
	return l
}

func (l *listLab) sendList(namesAndSources ...any) {
	var list []discovery.Mechanism
	for i := 0; i < len(namesAndSources); i += 2 {
		list = append(list, discovery.Mechanism{Name: namesAndSources[i].(string), Source: namesAndSources[i+1].(discovery.Source), Authority: "not counted"})
	}
	l.listSource.Mechanisms(list)
}

func (l *listLab) wantUpdates(want string) {
	l.t.Helper()
	if got := l.cc.take(); got != want {
		l.t.Errorf("channel saw\n%s\nwant\n%s", got, want)
	}
}

// The discovery mechanisms of a list are in priority order. The channel must not be updated before
// the first mechanism has answered.
func TestMechanismList(t *testing.T) {
	l := newListLab(t)
	a, b := &fakeSource{}, &fakeSource{}
	l.sendList("a", a, "b", b)
	l.wantUpdates("")
	b.sendAddresses("10.0.0.2:1")
	l.wantUpdates("")
	a.sendAddresses("10.0.0.1:1")
	l.wantUpdates(`state 10.0.0.1:1["a/child0" "/"] 10.0.0.2:1["b/child0" "/"]`)
	l.sendList("a", a, "b", b)
	if l.wantUpdates(""); a.closeCount+b.closeCount > 0 {
		t.Error("a source was closed")
	}
	c := &fakeSource{}
	l.sendList("c", c, "b", b, "a", a)
	l.wantUpdates("")
	c.Fail(errors.New("no c"))
	l.wantUpdates(`state 10.0.0.2:1["b/child0" "/"] 10.0.0.1:1["a/child0" "/"]`)
	if !strings.Contains(l.cc.config(), `"priorities":["c","b/child0","a/child0"]`) {
		t.Errorf("config %s does not have all priorities in order", l.cc.config())
	}
	// The source of a mechanism that is no longer in the list must be closed, and its later reports
	// must have no effect.
	l.sendList("c", c, "a", a)
	l.wantUpdates(`state 10.0.0.1:1["a/child0" "/"]`)
	b.sendAddresses("10.0.0.9:1")
	if l.wantUpdates(""); b.closeCount != 1 || a.closeCount != 0 {
		t.Errorf("b was closed %d times, a %d", b.closeCount, a.closeCount)
	}
}

// The old list must stay in use until a mechanism of the new list has answered.
func TestMechanismListMakeBeforeBreak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newListLab(t)
		a, b, c := &fakeSource{}, &fakeSource{}, &fakeSource{}
		l.sendList("a", a)
		a.sendAddresses("10.0.0.1:1")
		l.wantUpdates(`state 10.0.0.1:1["a/child0" "/"]`)
		l.sendList("b", b, "c", c)
		time.Sleep(time.Hour)
		l.wantUpdates("")
		b.Fail(errors.New("no b"))
		l.wantUpdates("")
		a.sendAddresses("10.0.0.2:1")
		l.wantUpdates(`state 10.0.0.2:1["a/child0" "/"]`)
		c.sendAddresses("10.0.0.3:1")
		l.wantUpdates(`state 10.0.0.3:1["c/child0" "/"]`)
		if a.closeCount != 1 {
			t.Errorf("a was closed %d times", a.closeCount)
		}
		// The channel must wait for a slow mechanism of the new list until the failover timeout
		// expires.
		d, e := &fakeSource{}, &fakeSource{}
		l.sendList("d", d, "e", e)
		e.sendAddresses("10.0.0.5:1")
		time.Sleep(10*time.Second - time.Nanosecond)
		l.wantUpdates("")
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		l.wantUpdates(`state 10.0.0.5:1["e/child0" "/"]`)
		d.sendAddresses("10.0.0.4:1")
		l.wantUpdates(`state 10.0.0.4:1["d/child0" "/"] 10.0.0.5:1["e/child0" "/"]`)
	})
}

func TestListsAndAnswersAlternate(t *testing.T) {
	l := newListLab(t)
	a := &fakeSource{}
	l.listSource.sendAddresses("10.0.0.1:1")
	l.wantUpdates(`state 10.0.0.1:1["child0" "/"]`)
	l.sendList("a", a)
	l.wantUpdates("")
	l.listSource.sendAddresses("10.0.0.1:1")
	a.sendAddresses("10.0.0.7:1")
	l.wantUpdates(`state 10.0.0.1:1["child0" "/"]`)
	l.sendList("a", a)
	a.sendAddresses("10.0.0.2:1")
	l.wantUpdates(`state 10.0.0.2:1["a/child0" "/"]`)
	l.listSource.sendAddresses("10.0.0.3:1")
	l.wantUpdates(`state 10.0.0.3:1["child0" "/"]`)
	if a.closeCount != 2 {
		t.Errorf("a was closed %d times, want twice", a.closeCount)
	}
}

// A new list contains a known mechanism with another source. The last answer of the old source must
// stay in use until the new source has answered, even if the new source fails first.
func TestMechanismWithNewSource(t *testing.T) {
	l := newListLab(t)
	one, two, three := &fakeSource{}, &fakeSource{}, &fakeSource{}
	l.sendList("a", one)
	one.sendAddresses("10.0.0.1:1")
	l.wantUpdates(`state 10.0.0.1:1["a/child0" "/"]`)
	l.sendList("a", two)
	l.wantUpdates("")
	one.sendAddresses("10.0.0.9:1")
	if l.wantUpdates(`state 10.0.0.9:1["a/child0" "/"]`); one.closeCount != 0 {
		t.Error("the previous source was closed too soon")
	}
	two.sendAddresses("10.0.0.2:1")
	if l.wantUpdates(`state 10.0.0.2:1["a/child0" "/"]`); one.closeCount != 1 {
		t.Errorf("the previous source was closed %d times", one.closeCount)
	}
	l.sendList("a", three)
	three.Fail(errors.New("down"))
	if l.wantUpdates(`state 10.0.0.2:1["a/child0" "/"]`); two.closeCount != 1 {
		t.Errorf("the second source was closed %d times", two.closeCount)
	}
	three.sendAddresses("10.0.0.3:1")
	l.wantUpdates(`state 10.0.0.3:1["a/child0" "/"]`)
}

// If a new list changes the sources of two discovery mechanisms, the channel must get both new
// answers in one update.
func TestListChangesAreCombined(t *testing.T) {
	l := newListLab(t)
	answering := func(address string) *fakeSource {
		return &fakeSource{onStart: func(s *fakeSource) { s.sendAddresses(address) }}
	}
	late := &fakeSource{}
	l.sendList("a", answering("10.1.0.1:1"), "b", answering("10.1.0.2:1"))
	l.wantUpdates(`state 10.1.0.1:1["a/child0" "/"] 10.1.0.2:1["b/child0" "/"]`)
	l.sendList("a", answering("10.2.0.1:1"), "b", answering("10.2.0.2:1"))
	l.wantUpdates(`state 10.2.0.1:1["a/child0" "/"] 10.2.0.2:1["b/child0" "/"]`)
	l.sendList("a", answering("10.3.0.1:1"), "b", late)
	l.wantUpdates("")
	late.sendAddresses("10.3.0.2:1")
	l.wantUpdates(`state 10.3.0.1:1["a/child0" "/"] 10.3.0.2:1["b/child0" "/"]`)
}

// The errors of calls must contain the error and the name of each mechanism if no mechanism has an
// address.
func TestMechanismErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newListLab(t)
		a, b := &fakeSource{}, &fakeSource{startError: "cannot start"}
		l.sendList("a", a, "b", b)
		a.Fail(errors.New("no such cluster"))
		l.wantUpdates("error x: no entry has an address: a: no such cluster; b: cannot start")
		c := &fakeSource{}
		l.sendList("c", c)
		c.Fail(errors.New("nor that"))
		l.wantUpdates("error x: c: nor that")
		before := logged.Count("x: mechanism 1 has the name \"\"")
		l.listSource.Mechanisms(nil)
		l.listSource.Mechanisms([]discovery.Mechanism{{Source: c}})
		l.wantUpdates("")
		if got := logged.Count("x: mechanism 1 has the name \"\"") - before; got != 1 {
			t.Errorf("a list with a mistake is logged %d times, want once", got)
		}
	})
}

// Requests for re-resolution must reach the sources that have a ResolveNow. The policies must ignore
// the requests for the endpoints of other sources.
func TestMechanismReresolution(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newListLab(t)
		resolveNows := ""
		a, b := &fakeSource{}, &fakeResolvingSource{onResolveNow: func() { resolveNows += "b" }}
		l.sendList("a", a, "b", b)
		a.sendAddresses("10.0.0.1:1")
		_ = b.Update(discovery.Answer{Resolved: []resolver.Endpoint{{Addresses: []resolver.Address{{Addr: "10.0.0.2:1"}}}}})
		for child, ignores := range map[string]string{"a/child0": "true", "b": "false"} {
			_, config, _ := strings.Cut(l.cc.config(), `"`+child+`":`)
			if _, after, _ := strings.Cut(config, `"ignoreReresolutionRequests":`); !strings.HasPrefix(after, ignores) {
				t.Errorf("%s ignores re-resolution: not %s, in %s", child, ignores, l.cc.config())
			}
			stateattr.ResolveNow(l.cc.lastState)(child, ignores == "true")
		}
		if synctest.Wait(); resolveNows != "b" {
			t.Errorf("the requests reach the sources %q, want b", resolveNows)
		}
	})
}

// A source sends a list inside Start, and the source in the list also answers inside Start. Closing
// the channel must close both sources.
func TestMechanismListInStart(t *testing.T) {
	a := &fakeSource{onStart: func(s *fakeSource) { s.sendAddresses("10.0.0.1:1") }}
	listSource := &fakeSource{onStart: func(s *fakeSource) { s.Mechanisms([]discovery.Mechanism{{Name: "a", Source: a}}) }}
	cc := &channel{}
	r := build(t, newSourceBuilder(listSource), cc)
	if got, want := cc.take(), `state 10.0.0.1:1["a/child0" "/"]`; got != want {
		t.Errorf("channel saw %q, want %q", got, want)
	}
	r.Close()
	if a.closeCount != 1 || listSource.closeCount != 1 {
		t.Errorf("closed %d and %d times, want once each", a.closeCount, listSource.closeCount)
	}
	late := &fakeSource{}
	listSource.Mechanisms([]discovery.Mechanism{{Name: "late", Source: late}})
	if late.Receiver != nil {
		t.Error("a source is started after Close")
	}
}

// The mechanisms of a list must have the authority of the mechanism whose source sent the list, and
// their names must begin with its name.
func TestListFromNamedMechanism(t *testing.T) {
	cc, listSource, other, a := &channel{}, &fakeSource{}, &fakeSource{}, &fakeSource{}
	r := build(t, newBuilder([]discovery.Mechanism{
		{Name: "whole", Source: listSource, Authority: "whole.example.com"},
		{Name: "other", Source: other, Authority: "other.example.com"},
	}), cc)
	defer r.Close()
	listSource.Mechanisms([]discovery.Mechanism{{Name: "a", Source: a, Authority: "forged"}})
	a.sendAddresses("10.0.0.1:1")
	if got, want := cc.take(), `state 10.0.0.1:1/whole.example.com["whole/a/child0" "/"]`; got != want {
		t.Errorf("channel saw %q, want %q", got, want)
	}
	other.sendAddresses("10.0.0.2:1")
	listSource.Mechanisms([]discovery.Mechanism{{Name: "a", Source: a}, {Name: "b", Source: &fakeSource{onStart: func(s *fakeSource) { s.Fail(errors.New("x")) }}}})
	if got, want := cc.take(), `state 10.0.0.1:1/whole.example.com["whole/a/child0" "/"] 10.0.0.2:1/other.example.com["other/child0" "/"]`; !strings.HasSuffix(got, want) {
		t.Errorf("channel saw %q, want %q", got, want)
	}
	if !strings.Contains(cc.config(), `"priorities":["whole/a/child0","whole/b","other/child0"]`) {
		t.Errorf("config %s does not have all priorities in order", cc.config())
	}
}

func TestMechanismListAfterIdle(t *testing.T) {
	listSource, a := &fakeSource{}, &fakeSource{}
	b := newSourceBuilder(listSource)
	cc := &channel{}
	r := build(t, b, cc)
	listSource.Mechanisms([]discovery.Mechanism{{Name: "a", Source: a}})
	a.sendAddresses("10.0.0.1:1")
	r.Close()
	cc.take()
	r = build(t, b, cc)
	defer r.Close()
	listSource.Fail(errors.New("the server is down"))
	if cc.take() != "" {
		t.Error("the mechanism is used before its source has failed")
	}
	a.Fail(errors.New("down, too"))
	if got, want := cc.take(), `state 10.0.0.1:1["a/child0" "/"]`; got != want {
		t.Errorf("channel saw %q, want %q", got, want)
	}
}
