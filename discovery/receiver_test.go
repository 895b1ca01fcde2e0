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

func callAllMethods(r *discovery.Receiver, text string) {
	r.Trying(text)
	r.Fail(errors.New(text))
	r.Unconfirmed(errors.New(text), time.Now())
	r.Rejected(errors.New(text))
	_ = r.Update(flat.Answer(flat.Endpoint{Address: "10.9.9.9:1"}))
	r.Confirm()
	r.Mechanisms([]discovery.Mechanism{{Name: "late", Source: &fakeSource{onStart: func(*fakeSource) { panic("a mechanism is started after Close") }}}})
	_ = r.Remembered()
}

// After Close, reports of the source must not be used, logged or stored.
func TestReceiverAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, cc := &fakeSource{}, &channel{}
		b := newSourceBuilder(s)
		r := build(t, b, cc)
		answer := flat.Answer(flat.Endpoint{Address: "10.0.0.1:1"})
		answer.Names = map[string]discovery.Name{"a": {}}
		_ = s.Update(answer)
		r.Close()
		cc.take()
		const text = "said after Close"
		callAllMethods(s.Receiver, text)
		if err := s.Update(discovery.Answer{}); err != nil {
			t.Errorf("an answer that breaks the rules is an error after Close: %v", err)
		}
		time.Sleep(time.Minute)
		if got := cc.take(); got != "" || logged.Count(text) > 0 {
			t.Errorf("the channel saw %q, and the log has it %d times", got, logged.Count(text))
		}
		r = build(t, b, cc)
		defer r.Close()
		s.Fail(errors.New("down"))
		r.Close()
		if names := s.Remembered(); names != nil {
			t.Errorf("Remembered returns %v after Close", names)
		}
		if got, want := cc.take(), `state 10.0.0.1:1["child0" "/"]`; got != want {
			t.Errorf("kept is %q, want %q", got, want)
		}
	})
}

// A source that could not be started must not be closed. Close must accept a source without
// Started.Close.
func TestSourceIsNotClosedAfterStartError(t *testing.T) {
	failing, working := &fakeSource{startError: "no registry in the environment"}, &fakeSource{}
	r := build(t, newBuilder([]discovery.Mechanism{{Name: "bad", Source: failing}, {Name: "none", Source: failingSource{}}, {Name: "good", Source: working}}), &channel{})
	r.Close()
	if failing.closeCount != 0 || working.closeCount != 1 {
		t.Errorf("closed %d times where Start failed, want never, and %d times where not, want once", failing.closeCount, working.closeCount)
	}
	if _, err := newSourceBuilder(failing).Build(target("x:///y"), &channel{}, resolver.BuildOptions{}); err == nil || failing.closeCount != 0 {
		t.Errorf("alone: error %v, closed %d times", err, failing.closeCount)
	}
}

type invalidSource struct{ fakeSource }

func (*invalidSource) Check(read bool) error {
	return fmt.Errorf("no registry in the environment (read %v)", read)
}

// The Check method of a source that wraps another source must call the Check method of that source.
func TestCheckOfWrappedSource(t *testing.T) {
	for _, read := range []bool{false, true} {
		b := newSourceBuilder(discovery.Refreshed(&invalidSource{}, discovery.Refresh{Every: time.Minute, RemoveAfter: 2}))
		err := b.Check(target("x:///y"), read)
		if want := fmt.Sprintf("x: no registry in the environment (read %v)", read); fmt.Sprint(err) != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// With must replace only the methods whose hooks are set.
func TestReceiverWith(t *testing.T) {
	callAllMethods(new(discovery.Receiver), "to nobody")
	new(discovery.Receiver).With(discovery.Hooks{Fail: func(err error) {
		if err == nil {
			t.Error("a failure without a reason is passed on as nil")
		}
	}}).Fail(nil)
	var calls []string
	hooks := func(receiver string) discovery.Hooks {
		return discovery.Hooks{
			Fail:   func(err error) { calls = append(calls, receiver+" "+err.Error()) },
			Trying: func(text string) { calls = append(calls, receiver+" "+text) },
		}
	}
	first := new(discovery.Receiver).With(hooks("first"))
	second := first.With(discovery.Hooks{Fail: hooks("second").Fail})
	for _, r := range []*discovery.Receiver{second, first} {
		r.Fail(errors.New("failed"))
		r.Trying("trying")
	}
	if got, want := strings.Join(calls, ", "), "second failed, first trying, first failed, first trying"; got != want {
		t.Errorf("got:  %s\nwant: %s", got, want)
	}
}
