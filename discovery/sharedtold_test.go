package discovery_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/testing/flat"
)

type listener struct {
	words   []string
	started discovery.Started
}

func listen(t *testing.T, s discovery.Source) *listener {
	t.Helper()
	l := &listener{}
	add := func(format string, args ...any) { l.words = append(l.words, fmt.Sprintf(format, args...)) }
	var err error
	l.started, err = s.Start(new(discovery.Receiver).With(discovery.Hooks{
		Update:      func(a discovery.Answer) error { add("answer%s", a.Version); return nil },
		Fail:        func(err error) { add("fail(%v)", err) },
		Confirm:     func() { add("confirm") },
		Unconfirmed: func(err error, since time.Time) { add("doubt(%v,%v)", err, since.IsZero()) },
		Rejected:    func(err error) { add("reject(%v)", err) },
		Trying:      func(text string) { add("try(%s)", text) },
		Parts:       func(parts []discovery.Mechanism) { add("parts%d", len(parts)) },
		Remembered:  func() map[string]discovery.Name { return map[string]discovery.Name{"a": {}} },
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.started.Close() })
	return l
}

func (l *listener) take() string {
	synctest.Wait()
	words := strings.Join(l.words, " ")
	l.words = nil
	return words
}

// All users of a shared source must get its reports. A user that joins later must get only those
// that still apply.
func TestWhatASharedSourceSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{}
		source := discovery.Shared(t.Name(), 0, s)
		early := listen(t, source)
		if len(s.Remembered()) != 1 {
			t.Error("Remembered of the shared source is not that of its first channel")
		}
		lost := errors.New("lost")
		answer := func(version string) {
			a := flat.Answer(flat.Endpoint{Address: "10.0.0.1:1"})
			a.Version = version
			_ = s.Update(a)
		}
		for _, step := range []struct {
			say         func()
			early, late string
		}{
			{func() { s.Trying("dialling") }, "try(dialling)", "try(dialling)"},
			{func() { s.Fail(lost) }, "fail(lost)", "try(dialling) fail(lost)"},
			{func() { answer("1") }, "answer1", "answer1"},
			{func() { s.Rejected(lost) }, "reject(lost)", "answer1"},
			{func() { s.Unconfirmed(lost, time.Now()) }, "doubt(lost,false)", "answer1 doubt(lost,false)"},
			{func() { s.Confirm() }, "confirm", "answer1"},
			{func() { s.Unconfirmed(lost, time.Now()) }, "doubt(lost,false)", "answer1 doubt(lost,false)"},
			{func() { answer("2") }, "answer2", "answer2"},
			{func() { s.Unconfirmed(lost, time.Time{}) }, "doubt(lost,true)", "answer2 doubt(lost,true)"},
			{func() { answer("3") }, "answer3 doubt(lost,true)", "answer3 doubt(lost,true)"},
			{func() { s.Unconfirmed(nil, time.Time{}) }, "doubt(<nil>,true)", "answer3"},
			{func() { s.raw.Fail(lost); s.Fail(errors.New("worse")) }, "fail(worse)", "answer3 fail(worse)"},
			{func() { s.raw.Confirm(); s.Fail(lost) }, "confirm fail(lost)", "answer3 fail(lost)"},
			{func() { s.Parts([]discovery.Mechanism{{Name: "a", Source: failing{}}}) }, "parts1", "parts1"},
		} {
			step.say()
			if got := early.take(); got != step.early {
				t.Errorf("the early member got %q, want %q", got, step.early)
			}
			late := listen(t, source)
			got := strings.TrimSpace(strings.NewReplacer("confirm ", "", "doubt(<nil>,true)", "").Replace(late.take() + " ")) // without reports that change nothing: confirmations, and the end of a doubt that never began
			if got != step.late {
				t.Errorf("after %q a late member got %q, want %q", step.early, got, step.late)
			}
			late.started.Close()
		}
	})
}
