package discovery_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy/discovery"
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
